import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import type { Delivery } from "../../shared/ports/bus.ts";
import { update } from "../../shared/retry/guarded-write.ts";
import { serve } from "../../shared/runner/serve.ts";
import { apply } from "../../shared/task/transitions.ts";
import { AGENT, agentOf, bench, untilAborted } from "../support/bench.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test("told to stop: the signal aborts, the task is handed off, no attempt counted, and goes on at once elsewhere", async () => {
  const stop = new AbortController();
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(({ signal }) => {
      const ended = untilAborted(signal);
      stop.abort(new Error("told to stop"));
      return ended;
    }),
  );
  await b.submit({}, { id: "t" });
  expect(await b.drain(undefined, stop.signal)).toEqual({ "handed-off": 1 });
  expect(await b.task("t")).toMatchObject({
    state: "dispatched",
    attempts: 0,
    released: true,
    settled: [],
    silentStarts: 0,
  });
  expect(await b.drain(agentOf(() => "done"))).toEqual({ completed: 1 });
  expect(await b.task("t")).toMatchObject({ state: "completed", fence: 2, executions: 2, dispatches: 1 });
});

test("what a handler still finishes after the stop is kept", async () => {
  const stop = new AbortController();
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(async () => {
      stop.abort(new Error("told to stop"));
      await new Promise((resolve) => setTimeout(resolve, 50));
      return "finished";
    }),
  );
  await b.submit({}, { id: "t" });
  expect(await b.drain(undefined, stop.signal)).toEqual({ completed: 1 });
  expect(await b.task("t")).toMatchObject({ state: "completed", result: "finished" });
});

test("cancelling a running task aborts its signal within a heartbeat", async () => {
  const running = Promise.withResolvers<void>();
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(({ signal }) => {
      running.resolve();
      return untilAborted(signal);
    }),
    { ackWait: 3_000 },
  );
  await b.submit({}, { id: "t" });
  const drained = b.drain();
  await running.promise;
  const stored = await b.deps.store.get("t");
  if (!stored) throw new Error("no document");
  const asked = await update(
    b.deps,
    stored,
    (task, own) => apply(task, { type: "requestCancel" }, own),
    () => {},
  );
  expect(asked.kind).toBe("written");
  expect(await drained).toEqual({ cancelled: 1 });
  expect(await b.task("t")).toMatchObject({
    state: "cancelled",
    released: true,
    settled: [{ outcome: "cancelled" }],
  });
});

test("a bystander's write while the handler runs is kept, and the completion is written on top of it", async () => {
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(async () => {
      const again = await b.submit({}, { id: "t" });
      return again.stoppedBy;
    }),
  );
  await b.submit({}, { id: "t" });
  expect(await b.drain()).toEqual({ completed: 1 });
  expect(await b.task("t")).toMatchObject({
    state: "completed",
    result: "document",
    publishDuplicates: { document: 1 },
  });
});

test("told to stop while an ack is under way, a runner puts back what was already served to its next pull", async () => {
  const stop = new AbortController();
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(() => "done"),
    { ackWait: 20_000 },
  );
  for (const id of ["a", "b"]) await b.submit({}, { id });
  const pull: typeof b.deps.bus.pull = (queue, waitMs) => {
    const own = b.deps.bus.pull(queue, waitMs);
    const acked = (delivery: Delivery): Delivery => ({
      ...delivery,
      ack: async () => {
        await delivery.ack();
        // The server serves the waiting pull now; then comes the SIGTERM.
        await new Promise((resolve) => setTimeout(resolve, 200));
        stop.abort(new Error("told to stop"));
      },
    });
    return { ...own, delivery: own.delivery.then((delivery) => delivery && acked(delivery)) };
  };
  const deps = { ...b.deps, bus: { ...b.deps.bus, pull } };
  expect(
    await serve(deps, { name: AGENT, agent: agentOf(() => "done"), mode: "forever", stop: stop.signal }),
  ).toEqual({ completed: 1 });
  // At once, not after ack_wait.
  const next = await b.deps.bus.pull(b.queue, 10_000).delivery;
  expect(next?.seq).toBe(2);
  await next?.nak(0);
});

test("handed off more often than its message may be delivered, a task that gets further is done all the same", async () => {
  const ran: number[] = [];
  let stop = new AbortController();
  const agent = agentOf(async ({ step, signal }) => {
    for (let n = 0; n < 15; n++)
      await step(`s${n}`, () => {
        ran.push(n);
        stop.abort(new Error("told to stop"));
      });
    signal.throwIfAborted();
    return "done";
  });
  // The least that the settings allow.
  await using b = await bench(nats, "nats-kv", agent, { maxDeliver: 10 });
  await b.submit({}, { id: "t" });
  for (let i = 0; i < 40 && (await b.task("t")).state !== "completed"; i++) {
    stop = new AbortController();
    await b.drain(undefined, stop.signal);
  }
  expect(await b.task("t")).toMatchObject({ state: "completed", result: "done", attempts: 0 });
  expect(ran).toEqual(Array.from({ length: 15 }, (_, n) => n));
  expect((await b.task("t")).settled.map(({ outcome }) => outcome)).toContain("rescheduled");
  expect(await b.deps.bus.advisories(10)).toEqual([]);
});
