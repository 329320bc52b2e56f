import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { defineAgent, Fatal, Retry } from "../../shared/agent.ts";
import type { Settlement } from "../../shared/task/document.ts";
import { isFinal } from "../../shared/task/table.ts";
import { agentOf, type Bench, bench, untilAborted } from "../support/bench.ts";
import { next } from "../support/servers/bus.ts";
import { oneOfEach, testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** Drains again and again until the task is over: retries come due in between. */
async function drainUntilFinal(b: Bench, id: string) {
  await until(`${id} is final`, async () => {
    await b.drain();
    return isFinal(await b.task(id));
  });
  return b.task(id);
}

describe.each(oneOfEach)("$kind", ({ kind, here }) => {
  describe.skipIf(!here)("what the handler does, and what becomes of the task", () => {
    test("throws, then returns: scheduled in between, settled twice, one failure counted", async () => {
      await using b = await bench(
        nats,
        kind,
        agentOf(({ attempt }) => {
          if (attempt === 1) throw new Retry("not yet", 100);
          return { attempt };
        }),
      );
      await b.submit({}, { id: "t" });
      expect(await b.drain()).toEqual({ retry: 1 });
      expect(await b.task("t")).toMatchObject({
        state: "scheduled",
        attempts: 1,
        released: true,
        lastError: { message: "not yet" },
      });
      expect(await drainUntilFinal(b, "t")).toMatchObject({
        state: "completed",
        result: { attempt: 2 },
        attempts: 1,
        executions: 2,
        dispatches: 2,
        fence: 2,
        settled: [
          { outcome: "rescheduled", dispatch: 1 },
          { outcome: "completed", dispatch: 2 },
        ],
      });
    });

    test("a failing task does not hold up the ones behind it", async () => {
      await using b = await bench(
        nats,
        kind,
        agentOf(({ id }) => {
          if (id === "bad") throw new Retry("later", 60_000);
        }),
      );
      await b.submit({}, { id: "bad" });
      await b.submit({}, { id: "good" });
      expect(await b.drain()).toEqual({ retry: 1, completed: 1 });
    });

    test("fails as often as it may: a dead letter with the last error", async () => {
      await using b = await bench(
        nats,
        kind,
        agentOf(
          () => {
            throw new Retry("always", 0);
          },
          { attempts: 3 },
        ),
      );
      await b.submit({ kept: 1 }, { id: "t" });
      expect(await drainUntilFinal(b, "t")).toMatchObject({
        state: "failed",
        error: { code: "attempts_exhausted", message: "Failed 3 times, at last: always" },
        attempts: 3,
        executions: 3,
        input: { kept: 1 },
      });
    });
  });
});

test("Fatal fails at once; any other throw, also of what is no error, is tried again", async () => {
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(({ id }) => {
      if (id === "fatal") throw new Fatal("no use");
      throw id === "text" ? "just text" : undefined;
    }),
  );
  for (const id of ["fatal", "text", "nothing"]) await b.submit({}, { id });
  expect(await b.drain()).toEqual({ failed: 1, retry: 2 });
  expect(await b.task("fatal")).toMatchObject({
    state: "failed",
    error: { code: "fatal", message: "no use", phase: "handler" },
    attempts: 1,
  });
  expect(await b.task("text")).toMatchObject({
    state: "scheduled",
    lastError: { code: "handler_failed", message: "just text" },
  });
  expect(await b.task("nothing")).toMatchObject({ state: "scheduled", lastError: { message: "undefined" } });
});

test("input that the agent's schema does not accept fails without running, naming the fields", async () => {
  let ran = 0;
  const agent = defineAgent({ input: z.object({ repo: z.string(), n: z.number() }), run: () => void ran++ });
  await using b = await bench(nats, "nats-kv", agent);
  await b.submit({ repo: 7 }, { id: "t" });
  expect(await b.drain()).toEqual({ failed: 1 });
  const task = await b.task("t");
  expect(task).toMatchObject({
    state: "failed",
    error: { code: "input_invalid", phase: "input" },
    attempts: 0,
  });
  expect(task.state === "failed" && task.error.message).toMatch(/repo: .*string.*; n: .*number/);
  expect(ran).toBe(0);
});

test.each([
  ["BigInt", 1n, "result_invalid"],
  ["a function", () => 1, "result_invalid"],
  [
    "a cycle",
    (() => {
      const a: Record<string, unknown> = {};
      a.a = a;
      return a;
    })(),
    "result_invalid",
  ],
  ["too much", "x".repeat(300_000), "result_too_large"],
  ["10,000 levels", Array.from({ length: 10_000 }).reduce((inner) => [inner], 1), "result_invalid"],
])("a result of %s is a clear failure", async (_, value, code) => {
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(() => value),
  );
  await b.submit({}, { id: "t" });
  expect(await b.drain()).toEqual({ failed: 1 });
  expect(await b.task("t")).toMatchObject({ state: "failed", error: { code, phase: "result" } });
});

test("no result is null", async () => {
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(() => undefined),
  );
  await b.submit({}, { id: "t" });
  await b.drain();
  expect(await b.task("t")).toMatchObject({ state: "completed", result: null });
});

test("a handler over its time limit is aborted and tried again", async () => {
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(({ signal }) => untilAborted(signal), { timeout: "200ms", attempts: 1 }),
  );
  await b.submit({}, { id: "t" });
  await b.drain();
  expect(await b.task("t")).toMatchObject({
    state: "failed",
    error: { code: "attempts_exhausted", message: expect.stringContaining("200 ms") },
    released: true,
  });
});

test("one that ignores its signal is left behind, and its task is not released", async () => {
  const never = new Promise(() => {});
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(() => never, { timeout: "100ms", attempts: 2 }),
    { stopGrace: 300, ackWait: 1_500 },
  );
  await b.submit({}, { id: "t" });
  expect(await b.drain()).toEqual({ retry: 1 });
  expect(await b.task("t")).toMatchObject({ state: "scheduled", released: false });
  // So the next holder starts a lease's time after its code was told to stop.
  const later = agentOf(() => "done");
  await until("it is due", async () => (await b.drain(later)).completed === 1);
  const task = await b.task("t");
  const told = task.history.find((entry) => entry.event === "retry");
  const start = task.history.findLast((entry) => entry.event === "start" || entry.event === "claim");
  expect((start?.at ?? 0) - (told?.at ?? 0)).toBeGreaterThanOrEqual(1_000);
});

test("on a strict lane a failing task holds back the ones behind it, until it is done", async () => {
  const order: string[] = [];
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(
      ({ id, attempt }) => {
        order.push(`${id}${attempt}`);
        if (id === "a" && attempt === 1) throw new Retry("later", 500);
      },
      { order: "strict" },
    ),
  );
  await b.submit({}, { id: "a" });
  await b.submit({}, { id: "b" });
  expect(await b.drain()).toEqual({ retry: 1, completed: 2 });
  expect(order).toEqual(["a1", "a2", "b1"]);
  expect((await b.task("a")).settled).toMatchObject([{ outcome: "completed", dispatch: 1 }]);
});

test("settlements beyond the newest 64 are paged out, and none is lost", async () => {
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(() => 1),
  );
  const direct = { taskId: "t", data: new TextEncoder().encode('{"v":1,"input":{}}'), headers: {} };
  for (let i = 0; i < 70; i++) {
    await b.deps.bus.publish(b.queue, { ...direct, msgId: `m${i}` });
    const { handle } = await import("../../shared/runner/handle.ts");
    const agent = agentOf(() => 1);
    const delivery = await next(b.deps, b.queue);
    await handle(b.deps, { delivery, queue: b.queue, agent, stop: new AbortController().signal });
  }
  const task = await b.task("t");
  expect(task.settledPages).toBe(1);
  const page = JSON.parse((await b.deps.store.getPart("t", "settled-0")) ?? "[]") as Settlement[];
  const all = [...page, ...task.settled];
  expect(all.map((one) => one.seq)).toEqual(Array.from({ length: 70 }, (_, i) => i + 1));
  expect(all.map((one) => one.outcome)).toEqual(["completed", ...Array(69).fill("duplicate")]);
  expect(task.executions).toBe(1);
});

test("delays that are no number, and messages that are no text, do no harm", async () => {
  const agent = agentOf(({ id, attempt }) => {
    if (attempt > 1) return "done";
    if (id === "text") throw Object.assign(new Error(), { message: { not: "text" } });
    throw new Retry("429", id === "nan" ? Number("Wed, 21 Oct") : Number.POSITIVE_INFINITY);
  });
  await using b = await bench(nats, "nats-kv", agent);
  for (const id of ["nan", "infinite", "text"]) await b.submit({}, { id });
  expect(await b.drain()).toEqual({ retry: 3 });
  for (const id of ["nan", "infinite", "text"])
    expect(await drainUntilFinal(b, id)).toMatchObject({ state: "completed" });
});

test("a time limit of months is no time limit of a millisecond", async () => {
  const agent = agentOf(() => new Promise((resolve) => setTimeout(() => resolve("done"), 50)), {
    timeout: "60d",
  });
  await using b = await bench(nats, "nats-kv", agent);
  await b.submit({}, { id: "t" });
  expect(await b.drain()).toEqual({ completed: 1 });
});
