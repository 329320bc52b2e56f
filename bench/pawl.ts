import { configFrom } from "../functions/wiring/config.ts";
import { type Wired, wire } from "../functions/wiring/wire.node.ts";
import { startNats } from "../infra/local/nats-server.ts";
import { type Agent, defineAgent } from "../shared/agent.ts";
import { ensureQueue, queueOf } from "../shared/dispatch/dispatch.ts";
import { submit } from "../shared/dispatch/submit.ts";
import type { Bus, Delivery } from "../shared/ports/bus.ts";
import { serve } from "../shared/runner/serve.ts";
import { laneOf } from "../shared/task/names.ts";
import { each, stopwatch } from "./rounds.ts";
import { type Done, done, type Work } from "./systems.ts";

export const AGENT = "noop";

/** Pawl in this process on a nats-server of its own, and on the store that these variables name: NATS KV without any. */
export async function openPawl(
  env: Readonly<Record<string, string>> = {},
): Promise<Wired & { readonly url: string }> {
  await using stack = new AsyncDisposableStack();
  const nats = stack.use(await startNats());
  const config = configFrom({ NATS_URL: nats.url, PAWL_STORE: "nats-kv", PAWL_NAMESPACE: "bench", ...env });
  const deps = stack.use(await wire(config, () => {}));
  const owned = stack.move();
  return { ...deps, url: nats.url, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** An agent that does nothing, in so many steps. */
export function noop(lanes = 1, steps = 0): Agent {
  const names = Array.from({ length: steps }, (_, i) => `step-${i}`);
  return defineAgent({
    limits: { lanes },
    run: async ({ step }) => {
      for (const name of names) await step(name, () => null);
      return { ok: true };
    },
  }) as Agent;
}

/** Tasks that wait in their queues, evenly: as many for each lane. */
export async function enqueue(deps: Wired, tasks: number, lanes = 1, agent = AGENT): Promise<void> {
  for (let lane = 0; lane < lanes; lane++) await ensureQueue(deps, queueOf(deps, { agent, lane }), "correct");
  await each(tasks, 64, async (index) => {
    let id = crypto.randomUUID();
    while (laneOf(id, lanes) !== index % lanes) id = crypto.randomUUID();
    await submit(deps, { agent, lanes, input: { text: "hello" }, id });
  });
}

/** The same bus, whose deliveries tell when they are acked: a task is over with its ack, not with its handler. */
export function tellingAcks(bus: Bus, acked: () => void, pulled: () => void = () => {}): Bus {
  const telling = (delivery: Delivery): Delivery => ({
    ...delivery,
    ack: async () => {
      await delivery.ack();
      acked();
    },
  });
  return {
    ...bus,
    pull: (...given) => {
      pulled();
      const pull = bus.pull(...given);
      return { ...pull, delivery: pull.delivery.then((one) => one && telling(one)) };
    },
  };
}

/** Drains what is queued as a runner that runs for ever does, from its first pull to the last ack. */
export async function drain(deps: Wired, agent: Agent, tasks: number, name = AGENT): Promise<Done> {
  const stop = new AbortController();
  const all = Promise.withResolvers<Done>();
  let took = stopwatch();
  let isBegun = false;
  let left = tasks;
  const pulled = () => {
    if (!isBegun) took = stopwatch();
    isBegun = true;
  };
  const acked = () => {
    if (--left === 0) all.resolve(done(tasks, took()));
  };
  const bus = tellingAcks(deps.bus, acked, pulled);
  const served = serve({ ...deps, bus }, { name, agent, mode: "forever", stop: stop.signal });
  const ended = served.then(() => Promise.reject(new Error("The runner ended")));
  const over = await Promise.race([all.promise, ended]);
  stop.abort();
  await served;
  ended.catch(() => {});
  return over;
}

export async function pawlWork({ tasks, lanes, steps }: Work): Promise<Done> {
  await using deps = await openPawl();
  await enqueue(deps, tasks, lanes);
  return await drain(deps, noop(lanes, steps), tasks);
}
