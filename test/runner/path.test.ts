import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { hearWords } from "../../infra/drills/outside/words.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { defineAgent } from "../../shared/agent.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import { serve } from "../../shared/runner/serve.ts";
import { streamName } from "../../shared/task/names.ts";
import { AGENT, bench } from "../support/bench.ts";
import { stores, testNats } from "../support/servers/stores.ts";

const echo = defineAgent({ run: ({ input }) => input });

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** Counts what is asked of the store. */
function counting(store: TaskStore) {
  const counts = { reads: 0, writes: 0, queries: 0 };
  const counted: TaskStore = {
    ...store,
    get: count("reads", store.get),
    create: count("writes", store.create),
    replace: count("writes", store.replace),
    due: count("queries", store.due),
  };
  function count<Args extends unknown[], T>(what: keyof typeof counts, ask: (...args: Args) => T) {
    return (...args: Args): T => {
      counts[what]++;
      return ask(...args);
    };
  }
  return { counted, counts };
}

describe.each(stores)("$kind", ({ kind, here }) => {
  test.skipIf(!here)(
    "the happy path costs two writes and no read per task; its submit one write",
    async () => {
      await using b = await bench(nats, kind, echo);
      const tasks = 20;
      const submits = counting(b.deps.store);
      for (let i = 0; i < tasks; i++) {
        await submit(
          { ...b.deps, store: submits.counted },
          { agent: AGENT, lanes: 1, input: { i }, id: `t${i}` },
        );
      }
      expect(submits.counts).toEqual({ reads: 0, writes: tasks, queries: 0 });

      const requests = vi.spyOn(globalThis, "fetch");
      const words = hearWords(b.deps.nc, b.queue);
      const runs = counting(b.deps.store);
      const stop = new AbortController().signal;
      const sleep = vi.fn(b.deps.clock.sleep);
      const deps = { ...b.deps, store: runs.counted, clock: { ...b.deps.clock, sleep } };
      expect(await serve(deps, { name: AGENT, agent: echo, mode: "drain", stop })).toEqual({
        completed: tasks,
      });
      // Timers of a task that is over at once: for its first heartbeat, and for its time limit. Queues may be looked at again.
      expect(sleep.mock.calls.length).toBeLessThan(2.5 * tasks);
      expect(runs.counts).toEqual({ reads: 0, writes: 2 * tasks, queries: 4 });
      // By the requests that really left, where they can be counted: two per task, four looks for due tasks, three for expired ones,
      // and one whether the agent is paused.
      if (kind === "firestore-rest") expect(requests).toHaveBeenCalledTimes(2 * tasks + 8);
      requests.mockRestore();
      await b.deps.nc.flush();
      expect(words.map((word) => word.word)).toEqual(Array(tasks).fill("+ACK"));
      const last = await b.task(`t${tasks - 1}`);
      expect(last).toMatchObject({
        state: "completed",
        result: { i: tasks - 1 },
        fence: 1,
        executions: 1,
        dispatches: 1,
        attempts: 0,
        settled: [{ seq: tasks, dispatch: 1, outcome: "completed" }],
      });
      expect(last.history.map((entry) => entry.event)).toEqual(["submit", "claim", "complete"]);
    },
  );

  test.skipIf(!here)(
    "a task dispatched through one Firestore client is claimed without a read by the other",
    async () => {
      if (kind === "nats-kv") return;
      await using b = await bench(nats, kind, echo);
      await b.submit({ n: 1 }, { id: "crossed" });
      const other = kind === "firestore" ? "firestore-rest" : "firestore";
      const { wire } = await import("../../functions/wiring/wire.node.ts");
      await using deps = await wire({ ...b.world.config, store: other }, () => {});
      const { counted, counts } = counting(deps.store);
      await serve(
        { ...deps, store: counted },
        { name: AGENT, agent: echo, mode: "drain", stop: new AbortController().signal },
      );
      expect(counts).toMatchObject({ reads: 0, writes: 2 });
      expect(await b.task("crossed")).toMatchObject({ state: "completed", fence: 1 });
    },
  );
});

test("tasks of one ordering key share a lane and run in order; lanes run beside each other", async () => {
  const order: string[] = [];
  const lanes = defineAgent({
    limits: { lanes: 4 },
    run: ({ input }) => void order.push(`${(input as { k: string }).k}${(input as { n: number }).n}`),
  });
  await using b = await bench(nats, "nats-kv", lanes);
  for (let lane = 0; lane < 4; lane++) await b.deps.bus.ensure({ ...b.queue, lane });
  for (let n = 0; n < 5; n++) {
    for (const k of ["x", "y"]) await b.submit({ k, n }, { orderingKey: k });
  }
  expect(await b.drain()).toEqual({ completed: 10 });
  for (const k of ["x", "y"]) {
    expect(order.filter((one) => one.startsWith(k))).toEqual([0, 1, 2, 3, 4].map((n) => `${k}${n}`));
  }
});

test("the next pull waits at the server before the ack of the last task is sent", async () => {
  await using b = await bench(nats, "nats-kv", echo);
  for (const id of ["a", "b", "c"]) await b.submit({}, { id });
  const seen: string[] = [];
  const done = Promise.withResolvers<void>();
  const hear = (subject: string, what: string) =>
    b.deps.nc.subscribe(subject, {
      callback: () => {
        seen.push(what);
        if (seen.filter((one) => one === "ack").length === 3) done.resolve();
      },
    });
  hear(`$JS.API.CONSUMER.MSG.NEXT.${streamName(b.queue)}.>`, "pull");
  hear("$JS.ACK.>", "ack");
  await b.deps.nc.flush();
  const stop = new AbortController();
  const served = serve(b.deps, { name: AGENT, agent: echo, mode: "forever", stop: stop.signal });
  await done.promise;
  stop.abort(new Error("told to stop"));
  await served;
  expect(seen).toEqual(["pull", "pull", "ack", "pull", "ack", "pull", "ack"]);
});
