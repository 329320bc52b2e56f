import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { type Agent, type AgentContext, Retry } from "../../shared/agent.ts";
import { signal } from "../../shared/dispatch/operate.ts";
import { agentQueues } from "../../shared/dispatch/queues.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { PawlError } from "../../shared/errors/errors.ts";
import type { Bus } from "../../shared/ports/bus.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import type { PullMode } from "../../shared/runner/pull.ts";
import { serve } from "../../shared/runner/serve.ts";
import type { Dispatched } from "../../shared/task/document.ts";
import { laneOf, streamName } from "../../shared/task/names.ts";
import { AGENT, agentOf, type Bench, bench } from "../support/bench.ts";
import { testNats } from "../support/servers/stores.ts";
import { later } from "../support/time/clocks.ts";
import { allCompleted } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const never = new AbortController().signal;

/** An agent of eight lanes that has run, and the same after all but one of them went. */
async function lowered(run: (context: AgentContext<unknown>) => unknown) {
  const b = await bench(nats, "nats-kv", agentOf(run, { lanes: 8 }));
  expect(await b.drain()).toEqual({});
  const fewer = (lanes: number): Agent => {
    Object.assign(b.deps, { lanesOf: () => lanes });
    return agentOf(run, { lanes });
  };
  return Object.assign(b, { fewer });
}

const left = async ({ deps }: Bench, lanes = 1) =>
  (await agentQueues(deps, [{ name: AGENT, lanes }]))[0]?.left;
const idsOf = (count: number) => Array.from({ length: count }, (_, i) => `t${i}`);
/** An id whose task is in no lane that is left. */
const gone = (lanes = 8) => idsOf(100).find((id) => laneOf(id, lanes) > 1) as string;

describe("tasks in lanes that went", () => {
  test.each(["drain", "idle", "forever"] as const)(
    "are drained, and named until they are: %s",
    async (mode: PullMode) => {
      await using b = await lowered(({ id }) => id);
      const ids = idsOf(12);
      for (const id of ids) await b.submit({}, { id });
      const one = b.fewer(1);
      const before = await left(b);
      const inOthers = ids.filter((id) => laneOf(id, 8) > 0);
      expect(before?.reduce((sum, { messages }) => sum + messages, 0)).toBe(inOthers.length);
      expect(new Set(before?.map(({ lane }) => lane))).toEqual(new Set(inOthers.map((id) => laneOf(id, 8))));
      const stop = new AbortController();
      const served = serve(b.deps, { name: AGENT, agent: one, mode, stop: stop.signal });
      await allCompleted(b.deps.store, ids);
      if (mode === "forever") stop.abort();
      expect(await served).toEqual({ completed: 12 });
      expect(await left(b)).toEqual([]);
      const named = b.deps.logged.filter(({ event }) => event === "lanes.left").map(({ fields }) => fields);
      expect(named).toMatchObject(
        before?.map(({ stream, lane, messages }) => ({ queue: stream, lane, messages })) ?? [],
      );
      b.deps.logged.length = 0;
      expect(await b.drain(one)).toEqual({});
      expect(b.deps.logged.filter(({ event }) => event === "lanes.left")).toEqual([]);
    },
  );

  test("are dispatched to one that is left: retries, waits, and those of one key together", async () => {
    await using b = await lowered(async ({ input, attempt, waitFor }) => {
      if ((input as { waits?: boolean }).waits) return waitFor("go");
      if (attempt === 1) throw new Retry("not yet", 0);
      return "done";
    });
    const keys = idsOf(100).filter((key) => laneOf(key, 8) > 1);
    const [key = ""] = keys.filter((one) => laneOf(one, 2) === 1);
    const ids = ["first", "second"];
    for (const id of ids) await b.submit({}, { id, orderingKey: key });
    await b.submit({ waits: true }, { id: gone() });
    expect(await b.drain()).toEqual({ retry: 2, waiting: 1 });
    const two = b.fewer(2);
    // The old ones are gone for good: nothing may be published there.
    const jsm = await jetstreamManager(b.deps.nc);
    for (let lane = 2; lane < 8; lane++) await jsm.streams.delete(streamName({ ...b.queue, lane }));
    expect(await dispatchDue(later(b.deps, 5_000), AGENT, undefined, two.limits)).toBe(2);
    await signal(b.deps, gone(), "go", "went");
    const queueOf = async (id: string) => ((await b.task(id)) as Dispatched).queue;
    const queues = await Promise.all([...ids, gone()].map(queueOf));
    const home = (lane: number) => streamName({ ...b.queue, lane });
    expect(queues).toEqual([home(1), home(1), home(laneOf(gone(), 2))]);
    // Looked for where their documents say: nothing is published twice.
    expect(await dispatchDue(later(b.deps, 90_000), AGENT, undefined, two.limits)).toBe(0);
    expect(await b.drain(two)).toEqual({ completed: 3 });
    for (const id of ids) expect(await b.task(id)).toMatchObject({ dispatches: 2, executions: 2 });
  });

  test.each([true, false])(
    "whose message was never published are: its queue is there: %s",
    async (isThere) => {
      await using b = await lowered(({ id }) => id);
      const id = gone();
      const dead = () => Promise.reject(new Error("killed here"));
      const real = { ...b.deps.bus };
      const { replace } = b.deps.store;
      // Neither the message nor the rollback: exactly what a killed submitter leaves.
      Object.assign(b.deps.bus, { publish: dead });
      Object.assign(b.deps.store, { replace: dead });
      await expect(b.submit({}, { id })).rejects.toThrow("killed here");
      Object.assign(b.deps.bus, { publish: real.publish });
      Object.assign(b.deps.store, { replace });
      const one = b.fewer(1);
      const queue = { ...b.queue, lane: laneOf(id, 8) };
      if (!isThere) await (await jetstreamManager(b.deps.nc)).streams.delete(streamName(queue));
      await dispatchDue(later(b.deps, 61_000), AGENT, undefined, one.limits);
      // Without a queue it was rolled back, and is dispatched anew.
      if (!isThere) await dispatchDue(later(b.deps, 130_000), AGENT, undefined, one.limits);
      expect(await b.task(id)).toMatchObject({ state: "dispatched", dispatches: isThere ? 1 : 2 });
      expect(await b.drain(one)).toEqual({ completed: 1 });
    },
  );
});

test("an older generation is drained too, a newer one is left to its own runners", async () => {
  const agent = agentOf(({ id }) => id);
  await using b = await bench(nats, "nats-kv", agent, { generation: 2 });
  const of = (generation: number): Deps => ({ ...b.deps, settings: { ...b.deps.settings, generation } });
  const submitTo = async (generation: number) => {
    const { submit } = await import("../../shared/dispatch/submit.ts");
    await b.deps.bus.ensure({ ...b.queue, generation });
    await submit(of(generation), { agent: AGENT, lanes: 1, input: {}, id: `g${generation}` });
  };
  for (const generation of [1, 2, 3]) await submitTo(generation);
  expect(await left(b)).toMatchObject([{ generation: 1, messages: 1 }]);
  expect(await b.drain()).toEqual({ completed: 2 });
  expect(await b.task("g3")).toMatchObject({ state: "dispatched" });
});

test("an older generation that belongs to another store is left alone", async () => {
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(({ id }) => id),
  );
  await b.submit({}, { id: "theirs" });
  const { streams } = await jetstreamManager(b.deps.nc);
  await streams.update(streamName(b.queue), { metadata: { "pawl-store": "firestore:shop:pawl" } });
  Object.assign(b.deps, { settings: { ...b.deps.settings, generation: 2 } });
  expect(await left(b)).toMatchObject([{ generation: 1, messages: 1 }]);
  expect(await b.drain()).toEqual({});
  expect(await left(b)).toMatchObject([{ generation: 1, messages: 1 }]);
  expect(b.deps.logged.map(({ event }) => event)).toContain("lanes.uncorrected");
});

test.each(["idle", "drain"] as const)(
  "a lane that fails does not end the others' connection under them: %s",
  async (mode) => {
    const started = Promise.withResolvers<void>();
    const failed = Promise.withResolvers<void>();
    const agent = agentOf(
      async () => {
        started.resolve();
        await failed.promise;
        // Long enough for whoever does not wait for this.
        await new Promise((resolve) => setTimeout(resolve, 100));
      },
      { lanes: 2 },
    );
    await using b = await bench(nats, "nats-kv", agent);
    await b.drain();
    const id = idsOf(100).find((one) => laneOf(one, 2) === 1) as string;
    const broken = idsOf(100).find((one) => laneOf(one, 2) === 0) as string;
    await b.submit({}, { id });
    await b.submit({}, { id: broken });
    const pull: Bus["pull"] = (queue, ms) => {
      if (queue.lane !== 0) return b.deps.bus.pull(queue, ms);
      const refused = async () => {
        await started.promise;
        failed.resolve();
        throw new PawlError("queue_gone", "the consumer is gone");
      };
      return { delivery: refused(), cancel: async () => {} };
    };
    const deps = { ...b.deps, bus: { ...b.deps.bus, pull } };
    await expect(serve(deps, { name: AGENT, agent, mode, stop: never })).rejects.toMatchObject({
      code: "queue_gone",
    });
    expect(await b.task(id)).toMatchObject({ state: "completed" });
  },
);
