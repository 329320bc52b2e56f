import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { defineAgent } from "../../shared/agent.ts";
import { submitTicks } from "../../shared/dispatch/cron.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { readCounts } from "../../shared/meter/meter.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import type { TaskFilter } from "../../shared/ports/store.ts";
import type { Task } from "../../shared/task/document.ts";
import { ORPHAN_AFTER } from "../../shared/task/due.ts";
import { streamName } from "../../shared/task/names.ts";
import type { Schedule } from "../../shared/task/schedule.ts";
import { AGENT, type Bench, bench, untilAborted } from "../support/bench.ts";
import { hasEmulator, testNats, wired } from "../support/servers/stores.ts";
import { later } from "../support/time/clocks.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

function counting() {
  const runs: string[] = [];
  return { runs, agent: defineAgent({ run: ({ id }) => void runs.push(id) }) };
}

const at = (deps: Deps, now: () => number): Deps => ({ ...deps, clock: { ...deps.clock, now } });
const LATER = ORPHAN_AFTER + 1_000;

/** Two dispatchers, each with connections of its own, at once. */
async function both<T>(other: Deps, b: Bench, work: (deps: Deps) => Promise<T>): Promise<[T, T]> {
  return Promise.all([work(b.deps), work(other)]);
}

async function tasksOf(b: Bench, filter: TaskFilter): Promise<Task[]> {
  const found: Task[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await b.deps.store.list(filter, 500, cursor);
    found.push(...page.tasks);
    if (page.cursor === undefined) return found;
    cursor = page.cursor;
  }
}

const requeued = async (other: Deps, b: Bench) => {
  for (const deps of [b.deps, other]) await deps.meter.flush();
  return (await readCounts(b.deps.store))['pawl_requeued_total{agent="tested"}'];
};

describe.each([
  { kind: "nats-kv", here: true },
  { kind: "firestore-rest", here: hasEmulator },
] as const)("$kind: two dispatchers at once", ({ kind, here }) => {
  describe.skipIf(!here).each(["at the same moment", "one after the other"])("400 tasks, due %s", (due) => {
    test("are each dispatched once", async () => {
      const { runs, agent } = counting();
      await using b = await bench(nats, kind, agent);
      await using other = await wired(b.world.config);
      const first = Date.now() + 600_000;
      const ids = Array.from({ length: 400 }, (_, i) => `t${i}`);
      const left = ids.entries();
      const submitter = async () => {
        for (const [i, id] of left) {
          const dueAt = due === "at the same moment" ? first : first + i;
          expect(await b.submit({}, { id, at: dueAt })).toMatchObject({ state: "scheduled" });
        }
      };
      await Promise.all(Array.from({ length: 16 }, submitter));
      expect(await dispatchDue(b.deps, AGENT)).toBe(0);

      let refused = 0;
      const [one, two] = await both(other, b, (deps) => {
        const replace: Deps["store"]["replace"] = async (...args) => {
          const result = await deps.store.replace(...args);
          if (result.kind === "refused") refused++;
          return result;
        };
        return dispatchDue(later({ ...deps, store: { ...deps.store, replace } }, 700_000), AGENT);
      });
      expect(one + two).toBe(400);
      // They were in each other's way.
      expect(refused).toBeGreaterThan(0);
      expect(await b.deps.bus.inspect(b.queue)).toMatchObject({ messages: 400, lastSeq: 400 });
      const tasks = await tasksOf(b, { agent: AGENT });
      expect(tasks.map(({ id }) => id).sort()).toEqual([...ids].sort());
      const odd = tasks.filter(({ state, dispatches }) => state !== "dispatched" || dispatches !== 1);
      expect(odd).toEqual([]);
      expect(runs).toEqual([]);
    });
  });

  describe.skipIf(!here)("repair", () => {
    test("a running task whose message was deleted by hand: requeued once, and completed with one result", async () => {
      const events: string[] = [];
      const agent = defineAgent({
        run: ({ signal }) => {
          events.push("start");
          if (events.length > 1) return "by the second";
          return untilAborted(signal).catch((reason: { code?: string }) => {
            events.push(`aborted: ${reason.code}`);
            throw reason;
          });
        },
      });
      await using b = await bench(nats, kind, agent, { ackWait: 1_500 });
      await using other = await wired(b.world.config);
      await b.submit({}, { id: "t" });
      const stop = new AbortController();
      const held = b.drain(agent, stop.signal);
      await until("it runs", async () => events.includes("start"));
      const jsm = await jetstreamManager(b.deps.nc);
      await jsm.streams.deleteMessage(streamName(b.queue), 1);
      const [one, two] = await both(other, b, (deps) => dispatchDue(later(deps, LATER), AGENT));
      expect(one + two).toBe(1);
      expect(await b.deps.bus.inspect(b.queue)).toMatchObject({ messages: 1, lastSeq: 2 });
      await held;
      await until("it is completed", async () => {
        await b.drain();
        return (await b.task("t")).state === "completed";
      });
      expect(events).toEqual(["start", "aborted: lease_lost", "start"]);
      const task = await b.task("t");
      expect(task).toMatchObject({
        result: "by the second",
        dispatches: 2,
        executions: 2,
        attempts: 0,
      });
      const completed = task.settled.filter(({ outcome }) => outcome === "completed");
      expect(completed).toMatchObject([{ seq: 2, dispatch: 2 }]);
      expect(task.history.filter(({ event }) => event === "requeue")).toHaveLength(1);
      expect(task.history.filter(({ event }) => event === "complete")).toHaveLength(1);
      expect(await requeued(other, b)).toBe(1);
    });

    test("a first submit whose submitter died between its write and its publish: sent once, and run once", async () => {
      const { runs, agent } = counting();
      await using b = await bench(nats, kind, agent);
      await using other = await wired(b.world.config);
      // A dead process: it neither sends nor says that it did not.
      const publish = Promise.withResolvers<never>();
      const dead = { ...b.deps, bus: { ...b.deps.bus, publish: () => publish.promise } };
      void submit(dead, { agent: AGENT, lanes: 1, id: "t", input: { n: 1 } });
      await until("it is written", async () => (await b.deps.store.get("t")) !== undefined);
      expect(await both(other, b, (deps) => dispatchDue(later(deps, ORPHAN_AFTER / 2), AGENT))).toEqual([
        0, 0,
      ]);
      expect(await b.drain()).toEqual({});
      const [one, two] = await both(other, b, (deps) => dispatchDue(later(deps, LATER), AGENT));
      expect(one + two).toBe(1);
      expect(await both(other, b, (deps) => dispatchDue(later(deps, LATER), AGENT))).toEqual([0, 0]);
      expect(await b.deps.bus.inspect(b.queue)).toMatchObject({ messages: 1, lastSeq: 1 });
      expect(await b.drain()).toEqual({ completed: 1 });
      expect(await b.task("t")).toMatchObject({
        state: "completed",
        dispatches: 1,
        executions: 1,
        attempts: 0,
      });
      expect(runs).toEqual(["t"]);
      expect(await requeued(other, b)).toBe(1);
    });
  });

  test.skipIf(!here)(
    "a schedule makes one task a tick; after a pause only the newest tick counts",
    async () => {
      const { runs, agent } = counting();
      await using b = await bench(nats, kind, agent);
      await using other = await wired(b.world.config);
      const schedule: Schedule = { name: "minutely", cron: "* * * * *", timezone: "UTC", input: { n: 1 } };
      const agents = [{ name: AGENT, lanes: 1, schedules: [schedule] }];
      const tick = (time: string) =>
        both(other, b, (deps) =>
          submitTicks(
            at(deps, () => Date.parse(`2026-11-16T${time}Z`)),
            agents,
          ),
        );
      const ids = async () => (await tasksOf(b, { agent: AGENT })).map(({ id }) => id).sort();
      const id = (time: string) => `cron-${AGENT}-minutely-20261116T${time}`;

      expect(await tick("06:00:30")).toEqual([0, 0]);
      expect(await tick("06:00:59.999")).toEqual([0, 0]);
      expect(await ids()).toEqual([]);
      // Each of the two may have stored a half of it, so each may say that it was the one; there is one task.
      expect(Math.max(...(await tick("06:01:01")))).toBe(1);
      expect(await ids()).toEqual([id("0601")]);
      expect(await tick("06:01:59")).toEqual([0, 0]);
      expect(await ids()).toEqual([id("0601")]);
      expect(Math.max(...(await tick("07:01:10")))).toBe(1);
      expect(await tick("07:01:20")).toEqual([0, 0]);
      expect(await ids()).toEqual([id("0601"), id("0701")]);
      expect(Math.max(...(await tick("07:02:01")))).toBe(1);
      const expected = [id("0601"), id("0701"), id("0702")];
      expect(await ids()).toEqual(expected);

      expect(await b.deps.bus.inspect(b.queue)).toMatchObject({ messages: 3, lastSeq: 3 });
      expect(await b.drain()).toEqual({ completed: 3 });
      expect(runs).toEqual(expected);
      expect((await b.task(id("0701"))).input).toEqual({ n: 1 });
    },
  );
});

test("a tick is seen in the very second in which it comes", async () => {
  await using b = await bench(nats, "nats-kv", counting().agent);
  const schedule: Schedule = { name: "minutely", cron: "* * * * *", timezone: "UTC", input: {} };
  const agents = [{ name: AGENT, lanes: 1, schedules: [schedule] }];
  const tick = (time: string) =>
    submitTicks(
      at(b.deps, () => Date.parse(`2026-11-16T${time}Z`)),
      agents,
    );
  expect(await tick("06:00:30")).toBe(0);
  expect(await tick("06:00:59.999")).toBe(0);
  expect(await tick("06:01:00")).toBe(1);
});
