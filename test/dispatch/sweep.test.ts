import { Kvm } from "@nats-io/kv";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { defineAgent, Retry } from "../../shared/agent.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { PawlError } from "../../shared/errors/errors.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import { PATIENCE } from "../../shared/retry/patience.ts";
import { streamName } from "../../shared/task/names.ts";
import { AGENT, bench } from "../support/bench.ts";
import { oneOfEach, testNats } from "../support/servers/stores.ts";
import { later } from "../support/time/clocks.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const retriesOnce = defineAgent({
  run: ({ attempt }) => {
    if (attempt === 1) throw new Retry("not yet", 0);
    return { attempt };
  },
});

describe.each(oneOfEach)("$kind", ({ kind, here }) => {
  test.skipIf(!here)(
    "a retry whose dispatcher died between its write and its publish is dispatched again",
    async () => {
      await using b = await bench(nats, kind, retriesOnce);
      await b.submit({}, { id: "t" });
      expect(await b.drain()).toEqual({ retry: 1 });
      const killed = () => Promise.reject(new Error("killed here"));
      const dies = { ...b.deps, bus: { ...b.deps.bus, publish: killed }, store: { ...b.deps.store } };
      // Not even the rollback is written: exactly what a killed process leaves.
      let writes = 0;
      dies.store.replace = (...args) => (++writes > 1 ? killed() : b.deps.store.replace(...args));
      await dispatchDue(dies, AGENT);
      expect(await b.task("t")).toMatchObject({ state: "dispatched", dispatches: 2 });
      expect(await dispatchDue(b.deps, AGENT)).toBe(0);
      expect(await dispatchDue(later(b.deps, 61_000), AGENT)).toBe(1);
      // Its message is there now: looked at again, and left alone.
      expect(await dispatchDue(later(b.deps, 61_000), AGENT)).toBe(0);
      expect(await b.drain()).toEqual({ completed: 1 });
      expect(await b.task("t")).toMatchObject({
        state: "completed",
        dispatches: 2,
        attempts: 1,
        executions: 2,
      });
    },
  );

  test.skipIf(!here)("20 sweeps at once dispatch a due task once", async () => {
    // Of twenty at once the last may be answered late by a busy emulator.
    await using b = await bench(nats, kind, retriesOnce, { requestTimeout: 15_000 });
    for (const id of ["a", "b", "c"]) await b.submit({}, { id });
    expect(await b.drain()).toEqual({ retry: 3 });
    const counts = await Promise.all(
      Array.from({ length: 20 }, () => dispatchDue(later(b.deps, 5_000), AGENT)),
    );
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(3);
    expect(await b.drain()).toEqual({ completed: 3 });
    for (const id of ["a", "b", "c"])
      expect(await b.task(id)).toMatchObject({ dispatches: 2, executions: 2 });
  });

  test.skipIf(!here)(
    "a task that was published directly keeps its whole past when it is tried again",
    async () => {
      await using b = await bench(nats, kind, retriesOnce);
      const data = new TextEncoder().encode('{"v":1,"input":{"n":1}}');
      await b.deps.bus.publish(b.queue, { taskId: "direct", data, msgId: "m", headers: {} });
      expect(await b.drain()).toEqual({ retry: 1 });
      await until("it is completed", async () => (await b.drain()).completed === 1);
      const task = await b.task("direct");
      expect(task).toMatchObject({ state: "completed", fence: 2, attempts: 1, executions: 2 });
      expect(task.settled).toMatchObject([
        { seq: 1, outcome: "rescheduled" },
        { seq: 2, outcome: "completed" },
      ]);
      expect(task.history.map((entry) => entry.event)).toEqual([
        "adopt",
        "retry",
        "dispatch",
        "claim",
        "complete",
      ]);
    },
  );
});

test("a dispatcher whose own clock is a day ahead does not dispatch tonight's task; once it is night, any does", async () => {
  await using b = await bench(nats, "nats-kv", retriesOnce);
  const HOURS = 3_600_000;
  await b.submit({}, { id: "tonight", at: Date.now() + 6 * HOURS });
  const { clock } = b.deps;
  const wrong = (deps: Deps): Deps => ({ ...deps, clock: { ...clock, now: () => Date.now() + 24 * HOURS } });
  expect(await dispatchDue(wrong(b.deps), AGENT)).toBe(0);
  expect(await b.task("tonight")).toMatchObject({ state: "scheduled", dispatches: 0 });
  expect((await b.deps.bus.inspect(b.queue)).lastSeq).toBe(0);
  // A server's clock that is ahead starts nothing either.
  expect(await dispatchDue({ ...later(b.deps, 24 * HOURS), clock }, AGENT)).toBe(0);
  expect(await dispatchDue(wrong(later(b.deps, 6 * HOURS)), AGENT)).toBe(1);
  expect(await b.task("tonight")).toMatchObject({ state: "dispatched", dispatches: 1 });
});

test.each(["submitted", "published directly"])(
  "an outage of NATS while a retry is due strands nothing that was %s",
  async (how) => {
    await using b = await bench(nats, "nats-kv", retriesOnce);
    const data = new TextEncoder().encode('{"v":1,"input":{}}');
    if (how === "submitted") await b.submit({}, { id: "t" });
    else await b.deps.bus.publish(b.queue, { taskId: "t", data, msgId: "m", headers: {} });
    expect(await b.drain()).toEqual({ retry: 1 });
    let time = 0;
    const away = {
      ...b.deps,
      bus: { ...b.deps.bus, publish: () => Promise.reject(new PawlError("bus_unavailable", "away")) },
      // Each look at the clock is a second later: the patience is over at once.
      clock: { ...b.deps.clock, monotonic: () => (time += 1_000), sleep: async () => {} },
    };
    expect(await dispatchDue(away, AGENT)).toBe(0);
    expect(await b.task("t")).toMatchObject({ state: "dispatched" });
    expect(await dispatchDue(later(b.deps, 61_000), AGENT)).toBe(1);
    expect(await b.drain()).toEqual({ completed: 1 });
  },
);

test("an orphan in a long queue is found when its turn has come, and the others cost no look-up", async () => {
  const runs: string[] = [];
  const agent = defineAgent({
    run: ({ id, attempt }) => {
      if (attempt === 1) throw new Retry("not yet", 0);
      runs.push(id);
    },
  });
  await using b = await bench(nats, "nats-kv", agent);
  for (let i = 0; i < 105; i++) await b.submit({}, { id: `t${i}` });
  expect(await b.drain()).toEqual({ retry: 105 });
  expect(await dispatchDue(later(b.deps, 5_000), AGENT)).toBe(105);
  // The last one's message is lost; the others wait in their queue, for longer than anyone looks away.
  const { jetstreamManager } = await import("@nats-io/jetstream");
  const jsm = await jetstreamManager(b.deps.nc);
  const lost = await b.deps.bus.lookup(b.queue, "t104");
  await jsm.streams.deleteMessage(streamName(b.queue), lost?.seq ?? 0);
  let lookups = 0;
  const lookup: Deps["bus"]["lookup"] = (...args) => {
    lookups++;
    return b.deps.bus.lookup(...args);
  };
  const outside = later({ ...b.deps, bus: { ...b.deps.bus, lookup } }, 200_000);
  expect(await dispatchDue(outside, AGENT)).toBe(0);
  expect(lookups).toBeLessThan(3);
  expect(await b.drain()).toEqual({ completed: 104 });
  // Its Msg-Id is still in the duplicate window, so it is rolled back and at once dispatched under the next one.
  expect(await dispatchDue(outside, AGENT)).toBe(1);
  expect(await b.task("t104")).toMatchObject({ state: "dispatched", dispatches: 3 });
  expect(await b.drain()).toEqual({ completed: 1 });
  expect(runs).toContain("t104");
});

test("a queue that is missing holds up nobody's retries: one try, then later", async () => {
  await using b = await bench(nats, "nats-kv", retriesOnce);
  for (const id of ["a", "b"]) await b.submit({}, { id });
  expect(await b.drain()).toEqual({ retry: 2 });
  const missing: Deps = { ...later(b.deps, 5_000), settings: { ...b.deps.settings, generation: 2 } };
  // Far less than who waits for an answer would give it.
  const begun = Date.now();
  expect(await dispatchDue(missing, AGENT)).toBe(0);
  expect(Date.now() - begun).toBeLessThan(PATIENCE);
  for (const id of ["a", "b"]) expect(await b.task(id)).toMatchObject({ state: "scheduled", dispatches: 2 });
});

test("NATS KV: a sweep that comes between an index entry and its document leaves the entry", async () => {
  await using b = await bench(nats, "nats-kv", retriesOnce);
  await b.submit({}, { id: "t" });
  await b.drain();
  await until("it is completed", async () => (await b.drain()).completed === 1);
  const bucket = await new Kvm(b.deps.nc).open(`${b.world.config.settings.namespace}-tasks`);
  await bucket.put(`due.${AGENT}.scheduled.t`, "1");
  const due = async (until: number) =>
    (await b.deps.store.due(AGENT, "scheduled", { after: 0, until }, 10)).tasks;
  expect(await due(Date.now())).toEqual([]);
  expect((await bucket.get(`due.${AGENT}.scheduled.t`))?.string()).toBe("1");
  // One that has led nowhere for a while is removed.
  expect(await due(Date.now() + 121_000)).toEqual([]);
  expect((await bucket.get(`due.${AGENT}.scheduled.t`))?.operation ?? "PURGE").toBe("PURGE");
});

test.each(["dispatch", "rollback", "wake"] as const)(
  "NATS KV: a writer that dies between the index entry and its document, at a %s, strands nobody",
  async (event) => {
    const agent = defineAgent({
      run: async ({ attempt, waitFor }) => {
        if (event === "wake") await waitFor("x", { timeout: "1s" });
        if (attempt === 1 && event !== "wake") throw new Retry("not yet", 0);
        return "done";
      },
    });
    await using b = await bench(nats, "nats-kv", agent);
    await b.submit({}, { id: "t" });
    await b.drain();
    const { state } = await b.task("t");
    // Exactly what is left: the entry of the state that was about to be written, and the document as it was.
    const next = { dispatch: "dispatched", wake: "dispatched", rollback: "scheduled" }[event];
    if (event === "rollback") await dispatchDue(later(b.deps, 5_000), AGENT);
    const bucket = await new Kvm(b.deps.nc).open(`${b.world.config.settings.namespace}-tasks`);
    await bucket.put(`due.${AGENT}.${next}.t`, String(Date.now()));
    expect(state).toBe(event === "wake" ? "waiting" : "scheduled");
    await until("it is completed", async () => {
      await dispatchDue(later(b.deps, 400_000), AGENT);
      await b.drain();
      return (await b.task("t")).state === "completed";
    });
  },
);
