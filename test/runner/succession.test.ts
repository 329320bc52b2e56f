import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { signal } from "../../shared/dispatch/operate.ts";
import { update } from "../../shared/retry/guarded-write.ts";
import { serve } from "../../shared/runner/serve.ts";
import { takeoverWait } from "../../shared/settings/settings.ts";
import type { Running, Task } from "../../shared/task/document.ts";
import type { TaskEvent } from "../../shared/task/events.ts";
import { approvalSignal } from "../../shared/task/signals.ts";
import { successionWait } from "../../shared/task/succession.ts";
import { apply } from "../../shared/task/transitions.ts";
import { AGENT, agentOf, type Bench, bench } from "../support/bench.ts";
import { dead, dieAfter } from "../support/faults/death.ts";
import { oneOfEach, testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const yes = { approved: true, by: "ann" };
const done = agentOf(() => "done");
const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const isCompleted = (b: Bench) => async () => {
  await b.drain();
  return (await b.task("t")).state === "completed";
};

describe.each(oneOfEach)(
  "$kind: a step that was stored by a holder that died is not run again",
  ({ kind, here }) => {
    /** Its first holder stores a step and dies: the document still says that nothing is journaled. */
    async function stored() {
      const ran: string[] = [];
      const agent = agentOf(async ({ step }) => {
        await step("one", () => void ran.push("one"));
        return "done";
      });
      const b = await bench(nats, kind, agent, { ackWait: 3_000 });
      await b.submit({}, { id: "t" });
      await dieAfter(b, agent, (head) => head.count >= 1);
      expect(await b.task("t")).toMatchObject({ state: "running", journaled: 0 });
      return Object.assign(b, { ran });
    }

    test.skipIf(!here)("where its successor was told to stop before it began", async () => {
      await using b = await stored();
      const stop = new AbortController();
      const { store } = b.deps;
      const replace: typeof store.replace = async (task, seen) => {
        const written = await store.replace(task, seen);
        if (task.state === "running" && task.started && task.fence === 2)
          stop.abort(new Error("told to stop"));
        return written;
      };
      const deps = { ...b.deps, store: { ...store, replace } };
      const agent = agentOf(() => {
        throw new Error("must not start");
      });
      expect(await serve(deps, { name: AGENT, agent, mode: "drain", stop: stop.signal })).toEqual({
        "handed-off": 1,
      });
      expect(await b.task("t")).toMatchObject({ state: "dispatched", released: true });
      await until("it is completed", isCompleted(b));
      expect(b.ran).toEqual(["one"]);
    });

    test.skipIf(!here)("where its successor's code refused the input, and it was redriven", async () => {
      await using b = await stored();
      const { redrive } = await import("../../shared/dispatch/operate.ts");
      const { defineAgent } = await import("../../shared/agent.ts");
      const z = await import("zod");
      const strict = defineAgent({ input: z.object({ must: z.string() }), run: () => 1 });
      await until("it is refused", async () => {
        await b.drain(strict);
        return (await b.task("t")).state === "failed";
      });
      await redrive(b.deps, "t");
      await until("it is completed", isCompleted(b));
      expect(b.ran).toEqual(["one"]);
    });
  },
);

describe("a wait beside code that is not journaled", () => {
  /** Works beside the wait for as long as it is told, and looks at its signal before each deed or does not. */
  async function beside(work: (deed: () => void, signal: AbortSignal) => Promise<void>) {
    const deeds: { run: number; at: number }[] = [];
    let runs = 0;
    const agent = agentOf(async ({ approval, signal: own }) => {
      const run = ++runs;
      const note = () => void deeds.push({ run, at: performance.now() });
      note();
      const branch = async () => {
        await approval("go");
      };
      await Promise.all([branch(), run === 1 ? work(note, own) : undefined]);
      return run;
    });
    const b = await bench(nats, "nats-kv", agent, { ackWait: 3_000, stopGrace: 1_500 });
    await b.submit({}, { id: "t" });
    await b.drain();
    expect(await b.task("t")).toMatchObject({ state: "waiting" });
    await signal(b.deps, "t", approvalSignal("go"), yes);
    await until("it is completed", isCompleted(b));
    const of = (run: number) => deeds.filter((deed) => deed.run === run).map(({ at }) => at);
    return Object.assign(b, { lastOfFirst: Math.max(...of(1)), firstOfSecond: Math.min(...of(2)) });
  }

  test("that heeds its signal stops before the answer can start the next execution", async () => {
    await using b = await beside(async (deed, own) => {
      for (let i = 0; i < 200 && !own.aborted; i++) {
        deed();
        await later(20);
      }
    });
    expect(b.lastOfFirst).toBeLessThan(b.firstOfSecond);
  });

  test("that does not gets the grace to end before the next execution starts", async () => {
    await using b = await beside(async (deed) => {
      const end = performance.now() + 700;
      while (performance.now() < end) {
        deed();
        await later(20);
      }
    });
    expect(b.lastOfFirst).toBeLessThan(b.firstOfSecond);
  });

  test("costs nothing where there is none: the answer is followed at once", async () => {
    const agent = agentOf(async ({ approval, step }) => {
      const ask = async () => {
        await step("first", () => 1);
        return approval("go");
      };
      return (await ask()).by;
    });
    await using b = await bench(nats, "nats-kv", agent, { stopGrace: 60_000 });
    await b.submit({}, { id: "t" });
    await b.drain();
    expect(await b.task("t")).toMatchObject({ state: "waiting", released: true });
    await signal(b.deps, "t", approvalSignal("go"), yes);
    expect(await b.drain()).toEqual({ completed: 1 });
  });
});

/** A task that a runner has claimed, and died. */
async function claimedByTheDead(lease: number): Promise<Bench> {
  const b = await bench(nats, "nats-kv", done, { ackWait: 3_000 });
  await b.submit({}, { id: "t" });
  const found = await b.deps.store.get("t");
  if (found?.task.state !== "dispatched") throw new Error("not dispatched");
  const { queue } = found.task;
  const holder = { queue, seq: 1, token: "dead", runner: "dead", via: b.deps.bus.serverId(), lease };
  const change = (task: Task, own: Parameters<typeof apply>[2]) =>
    apply(task, { type: "claim", ...holder }, own);
  await update(b.deps, found, change, () => {});
  return b;
}

test("who is told to stop while it waits for its turn leaves to the next what is left of the wait, and the count of silent starts", async () => {
  await using b = await claimedByTheDead(60_000);
  const stop = new AbortController();
  const served = serve(b.deps, {
    name: AGENT,
    agent: agentOf(() => dead()),
    mode: "once",
    stop: stop.signal,
  });
  const running = await until("it waits for its turn", async () => {
    const task = await b.task("t");
    return task.fence === 2 && (task as Running);
  });
  // Its own lease is shorter, and has nothing to do with how long the dead one's lasts.
  expect(running).toMatchObject({ started: false, lease: 60_000, silentStarts: 1, executions: 1 });
  await later(600);
  stop.abort(new Error("told to stop"));
  expect(await served).toEqual({ "handed-off": 1 });
  const task = await b.task("t");
  expect(task).toMatchObject({ state: "dispatched", released: false, silentStarts: 1, executions: 1 });
  // A timer may come a moment early.
  expect(task.lease).toBeLessThan(59_500);
  expect(task.lease).toBeGreaterThan(30_000);
});

test("time that passed since a holder wrote that it stops is counted once, whoever waited for it", async () => {
  await using b = await claimedByTheDead(60_000);
  const write = async (event: TaskEvent, by: string) => {
    const found = await b.deps.store.get("t");
    if (!found) throw new Error("no task");
    const own = { now: Date.now(), stamp: crypto.randomUUID(), by };
    await b.deps.store.replace(apply(found.task, event, own), found.revision);
  };
  // Its code was told to stop, and still runs.
  await write({ type: "handOff", ended: false }, "first");
  const stop = new AbortController();
  const served = serve(b.deps, {
    name: AGENT,
    agent: agentOf(() => dead()),
    mode: "once",
    stop: stop.signal,
  });
  await until("another waits for its turn", async () => (await b.task("t")).fence === 2);
  await later(500);
  stop.abort(new Error("told to stop"));
  await served;
  const task = await b.task("t");
  expect(task).toMatchObject({ state: "dispatched", lease: 60_000, stopped: { by: "first", execution: 1 } });
  const at = task.stopped?.at ?? 0;
  expect(successionWait(task, { now: at + 10_000, by: "first" })).toBe(takeoverWait(60_000) - 10_000);
  // Of another machine, whose clock may be ahead.
  expect(successionWait(task, { now: at + 10_000, by: "other" })).toBe(takeoverWait(60_000) - 5_000);
  // One that has started since, whoever wrote that, is waited for in full.
  expect(successionWait({ ...task, executions: 2 }, { now: at + 10_000, by: "first" })).toBe(
    takeoverWait(60_000),
  );
});

test("where no invocation is long enough for a takeover's wait, several of them wait it out", async () => {
  await using b = await claimedByTheDead(2_500);
  let invocations = 0;
  await until("it is done", async () => {
    invocations++;
    const end = performance.now() + 1_200;
    const invocation = { left: () => Math.max(0, end - performance.now()), longest: 1_200 };
    await serve(
      { ...b.deps, invocation },
      { name: AGENT, agent: done, mode: "idle", stop: AbortSignal.timeout(1_200) },
    );
    return (await b.task("t")).state === "completed";
  });
  expect(invocations).toBeGreaterThan(1);
  expect(await b.task("t")).toMatchObject({ executions: 2 });
});

test("an invocation does not claim what it has no time to wait for, nor what needs more time than it has", async () => {
  await using b = await claimedByTheDead(20_000);
  const never = new AbortController().signal;
  const short = { ...b.deps, invocation: { left: () => 15_000, longest: 600_000 } };
  await until("it came again", async () => {
    const handled = await serve(short, { name: AGENT, agent: done, mode: "idle", stop: never });
    return handled["too-short"] === 1;
  });
  expect(await b.task("t")).toMatchObject({ state: "running", token: "dead", fence: 1 });
  // Put back, it is there for the next: at once.
  const long = { ...b.deps, invocation: { left: () => 300_000, longest: 600_000 } };
  const stop = new AbortController();
  const served = serve(long, { name: AGENT, agent: done, mode: "idle", stop: stop.signal });
  await until("one with more time claims it", async () => (await b.task("t")).fence === 2);
  stop.abort(new Error("told to stop"));
  await served;
});
