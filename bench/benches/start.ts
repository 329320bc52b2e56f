import { configFrom } from "../../functions/wiring/config.ts";
import { wire } from "../../functions/wiring/wire.node.ts";
import { type Agent, defineAgent } from "../../shared/agent.ts";
import { ensureQueue, queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { serve } from "../../shared/runner/serve.ts";
import type { Bench, Figure } from "../bench.ts";
import { documentsOf, textOf } from "../documents.ts";
import { openBare } from "../floors/bare.ts";
import { AGENT, openPawl } from "../pawl.ts";
import { interleaved } from "../rounds.ts";
import { percentile } from "../spread.ts";

const SUBMITS = 300;
/** Between two submits: the last task is over, and the next pull waits at the server. */
const CALM = 5;
const calm = () => new Promise((resolve) => setTimeout(resolve, CALM));

/** A submitter and an idle runner, each with a connection of its own. */
async function pawl(count: number): Promise<number[]> {
  await using deps = await openPawl();
  const env = { NATS_URL: deps.url, PAWL_STORE: "nats-kv", PAWL_NAMESPACE: "bench" };
  await using submitter = await wire(configFrom(env), () => {});
  await ensureQueue(deps, queueOf(deps, { agent: AGENT, lane: 0 }), "correct");
  let started = Promise.withResolvers<number>();
  const agent = defineAgent({
    run: () => {
      started.resolve(performance.now());
      return { ok: true };
    },
  }) as Agent;
  const stop = new AbortController();
  const served = serve(deps, { name: AGENT, agent, mode: "forever", stop: stop.signal });
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    await calm();
    started = Promise.withResolvers();
    const begun = performance.now();
    await submit(submitter, { agent: AGENT, lanes: 1, input: { text: "hello" } });
    times.push((await started.promise) - begun);
  }
  await calm();
  stop.abort();
  await served;
  return times;
}

async function bare(count: number): Promise<number[]> {
  await using own = await openBare(1);
  const { js, kv } = own;
  const [name = ""] = own.lanes;
  const consumer = await js.consumers.get(name, "runner");
  const times: number[] = [];
  for (let i = 0; i < count; i++) {
    const next = consumer.next({ expires: 5_000 }).then((message) => ({ message, at: performance.now() }));
    await calm();
    const id = crypto.randomUUID();
    const { created, message } = documentsOf(id);
    const text = textOf(created);
    const begun = performance.now();
    await kv.create(id, text);
    await js.publish(`${name}.${id}`, message);
    const { message: got, at } = await next;
    times.push(at - begun);
    await got?.ackAck();
  }
  return times;
}

export const startBenches = {
  start: {
    what: "submit → the handler starts, on an idle runner",
    floor: "raw nats.js: KV create, publish, a next that waits",
    required: "<= 1.5 ×, p50 and p99",
    run: async (stage): Promise<Figure[]> => {
      const count = stage.size(SUBMITS, 20);
      const rounds = await interleaved(stage, { bare: () => bare(count), pawl: () => pawl(count) });
      return [50, 99].map((percent) => {
        const of = (side: string) => (rounds[side] ?? []).map((times) => percentile(times, percent));
        const against = { name: "bare", values: of("bare") };
        const what = `submit → handler starts, p${percent}`;
        return { what, unit: "ms", pawl: of("pawl"), against, required: { most: 1.5 } };
      });
    },
  },
} satisfies Record<string, Bench>;
