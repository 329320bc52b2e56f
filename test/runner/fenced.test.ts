import { afterAll, beforeAll, expect, test } from "vitest";
import { hearWords } from "../../infra/drills/outside/words.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { defineAgent } from "../../shared/agent.ts";
import { NO_COST } from "../../shared/journal/cost.ts";
import type { HeldClaim } from "../../shared/ports/bus.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import { update } from "../../shared/retry/guarded-write.ts";
import { acknowledge } from "../../shared/runner/ack.ts";
import type { Holding } from "../../shared/runner/execution.ts";
import { takeLease } from "../../shared/runner/lease.ts";
import { record } from "../../shared/runner/record.ts";
import { serve } from "../../shared/runner/serve.ts";
import type { TaskEvent } from "../../shared/task/events.ts";
import { consumerName } from "../../shared/task/names.ts";
import { apply } from "../../shared/task/transitions.ts";
import { AGENT, type Bench, bench } from "../support/bench.ts";
import { next } from "../support/servers/bus.ts";
import { testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const never = new AbortController().signal;
const holder = (token: string, seq = 1) => ({ queue: "Q", seq, token, runner: token, via: "s", lease: 1 });

/** Somebody else's write, right now. */
async function write(b: Bench, id: string, event: TaskEvent) {
  const seen = await b.deps.store.get(id);
  if (!seen) throw new Error(`no task ${id}`);
  const written = await update(
    b.deps,
    seen,
    (task, own) => apply(task, event, own),
    () => {},
  );
  if (written.kind !== "written") throw new Error("not written");
  return written.stored;
}

function countingAgent() {
  const runs: string[] = [];
  return { runs, agent: defineAgent({ run: ({ id }) => void runs.push(id) }) };
}

test("a holder whose task was taken over can't complete it, however good it believes its lease to be", async () => {
  const { agent } = countingAgent();
  await using b = await bench(nats, "nats-kv", agent);
  await b.submit({}, { id: "t" });
  const first = await write(b, "t", { type: "claim", ...holder("first") });
  await write(b, "t", { type: "takeover", ...holder("second") });
  const lease = { check: () => {}, stopBeats: async () => {} };
  const execution = { deps: b.deps, agent, held: first, lease } as unknown as Holding;
  const recorded = await record(execution, {
    outcome: { kind: "completed", ended: true, result: "stale" },
    journal: { journaled: 0, spent: NO_COST, saved: NO_COST },
  });
  expect(recorded).toMatchObject({ word: { kind: "silent" }, as: "abandoned" });
  expect(await b.task("t")).toMatchObject({ state: "running", token: "second", fence: 2 });
});

test("a successor that is itself taken over while it waits for its turn does not run the handler", async () => {
  const { agent, runs } = countingAgent();
  await using b = await bench(nats, "nats-kv", agent, { ackWait: 6_000 });
  await b.submit({}, { id: "t" });
  const stream = (await b.task("t")) as { queue?: string };
  // Of a lease that takes longer than the rest of this on a busy machine.
  await write(b, "t", { type: "claim", ...holder("dead"), queue: stream.queue ?? "", lease: 60_000 });
  const stop = new AbortController();
  const served = serve(b.deps, { name: AGENT, agent, mode: "forever", stop: stop.signal });
  await until("it waits for its turn", async () => (await b.task("t")).fence === 2);
  await write(b, "t", { type: "takeover", ...holder("another"), queue: stream.queue ?? "" });
  await until("it has given up", async () => b.deps.logged.some(({ fields }) => fields.as === "abandoned"));
  expect(runs).toEqual([]);
  expect(await b.task("t")).toMatchObject({ state: "running", token: "another", fence: 3, executions: 1 });
  stop.abort(new Error("told to stop"));
  await served;
});

test("a machine that slept between the claim and the handler wakes up too late to start it", async () => {
  const { agent, runs } = countingAgent();
  await using b = await bench(nats, "nats-kv", agent);
  await b.submit({}, { id: "t" });
  // While a machine sleeps the wall's clock runs on, and no timer fires.
  let slept = 0;
  const clock = { ...b.deps.clock, now: () => Date.now() + slept };
  const replace: typeof b.deps.store.replace = async (task, seen) => {
    const result = await b.deps.store.replace(task, seen);
    if (task.state === "running") slept = 60_000;
    return result;
  };
  const deps: Deps = { ...b.deps, clock, store: { ...b.deps.store, replace } };
  expect(await serve(deps, { name: AGENT, agent, mode: "once", stop: never })).toEqual({ abandoned: 1 });
  expect(runs).toEqual([]);
  expect(await b.task("t")).toMatchObject({ state: "running", fence: 1 });
});

test("a nak is said only of a delivery that is still ours", async () => {
  const { agent } = countingAgent();
  await using b = await bench(nats, "nats-kv", agent, { ackWait: 1_000 });
  await b.submit({}, { id: "t" });
  const [first, second] = [await next(b.deps, b.queue), await next(b.deps, b.queue)];
  const words = hearWords(b.deps.nc, b.queue);
  const nak = { kind: "nak", delayMs: 0 } as const;
  const lease = takeLease(b.deps, first, "t");
  await acknowledge({ deps: b.deps, delivery: first, lease }, nak);
  await lease.release();
  const own = takeLease(b.deps, second, "t");
  expect(await acknowledge({ deps: b.deps, delivery: second, lease: own }, nak)).toBe(true);
  await own.release();
  expect(words.filter(({ word }) => word === "-NAK").map(({ delivery }) => delivery)).toEqual([2]);
});

test("a delivery repeated during a healthy last start does not end it as a crash loop", async () => {
  const finish = Promise.withResolvers<string>();
  let starts = 0;
  const agent = defineAgent({
    run: () => {
      starts++;
      return finish.promise;
    },
  });
  await using b = await bench(nats, "nats-kv", agent, { ackWait: 8_000, crashLimit: 2 });
  await b.submit({}, { id: "t" });
  const stream = ((await b.task("t")) as { queue?: string }).queue ?? "";
  await write(b, "t", { type: "claim", ...holder("crashed"), queue: stream });
  const first = serve(b.deps, { name: AGENT, agent, mode: "once", stop: never });
  await until("the second start runs", async () => starts === 1);
  expect(await b.task("t")).toMatchObject({ silentStarts: 2 });
  const { jetstreamManager } = await import("@nats-io/jetstream");
  await (await jetstreamManager(b.deps.nc)).consumers.delete(stream, consumerName(b.queue));
  await b.deps.bus.ensure(b.queue);
  const asked: boolean[] = [];
  const isHeld = async (claim: HeldClaim) => {
    asked.push(await b.deps.bus.isHeld(claim));
    return asked.at(-1) as boolean;
  };
  const second = serve(
    { ...b.deps, bus: { ...b.deps.bus, isHeld } },
    { name: AGENT, agent, mode: "once", stop: never },
  );
  await until("the holder was asked whether it lives", async () => asked.length > 0);
  expect(asked).toEqual([true]);
  finish.resolve("done");
  expect(await first).toEqual({ completed: 1 });
  expect(await second).toEqual({ skipped: 1 });
  expect(await b.task("t")).toMatchObject({ state: "completed", result: "done" });
});
