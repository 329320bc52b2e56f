import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import type { AgentContext } from "../../shared/agent.ts";
import { resolve, signal } from "../../shared/dispatch/operate.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import type { Task } from "../../shared/task/document.ts";
import { approvalSignal } from "../../shared/task/signals.ts";
import { AGENT, agentOf, type Bench, bench } from "../support/bench.ts";
import { oneOfEach, testNats } from "../support/servers/stores.ts";
import { travel } from "../support/time/clocks.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

async function drainUntil(b: Bench, id: string, state: Task["state"]): Promise<Task> {
  await until(`${id} is ${state}`, async () => {
    await b.drain();
    return (await b.task(id)).state === state;
  });
  return b.task(id);
}

const empty = { pending: 0, inFlight: 0 };

describe.each(oneOfEach)("$kind", ({ kind, here }) => {
  test.skipIf(!here)("an approval suspends, frees the lane, and goes on with the answer", async () => {
    const ran: string[] = [];
    const agent = agentOf(async ({ step, approval }) => {
      await step("before", () => void ran.push("before"));
      const { by, note } = await approval("publish", { summary: "Shall I?" });
      await step("after", () => void ran.push("after"));
      return { by, note };
    });
    await using b = await bench(nats, kind, agent);
    await b.submit({}, { id: "t" });
    const waiting = await drainUntil(b, "t", "waiting");
    expect(waiting).toMatchObject({ waitingFor: ["approval:publish"], summary: "Shall I?", released: true });
    expect(waiting.settled).toMatchObject([{ outcome: "waiting" }]);
    expect(await b.deps.bus.state(b.queue)).toEqual(empty);
    // The lane is free for others meanwhile.
    const answer = { approved: true, by: "ann", note: "fine" };
    expect(await signal(b.deps, "t", approvalSignal("publish"), answer)).toMatchObject({
      state: "dispatched",
    });
    expect(await drainUntil(b, "t", "completed")).toMatchObject({
      result: { by: "ann", note: "fine" },
      executions: 2,
      attempts: 0,
    });
    expect(ran).toEqual(["before", "after"]);
  });

  test.skipIf(!here)("a wait past its deadline goes on without an answer, once", async () => {
    const agent = agentOf(
      async ({ waitFor }) => (await waitFor("paid", { timeout: "1h" })) ?? "nothing came",
    );
    await using b = await bench(nats, kind, agent);
    const hours = travel(b.deps);
    await b.submit({}, { id: "t" });
    await drainUntil(b, "t", "waiting");
    expect(await dispatchDue(b.deps, AGENT)).toBe(0);
    hours(3_600_001);
    const both = await Promise.all([dispatchDue(b.deps, AGENT), dispatchDue(b.deps, AGENT)]);
    expect(both.reduce((a, c) => a + c)).toBe(1);
    expect(await drainUntil(b, "t", "completed")).toMatchObject({ result: "nothing came", dispatches: 2 });
  });

  test.skipIf(!here)("a sleep is over when its time has come, however often the handler starts", async () => {
    const agent = agentOf(async ({ sleep, step }) => {
      await sleep("2h");
      await step("then", () => 1);
      await sleep("20ms");
      return "awake";
    });
    await using b = await bench(nats, kind, agent);
    const hours = travel(b.deps);
    await b.submit({}, { id: "t" });
    const asleep = await drainUntil(b, "t", "scheduled");
    expect(asleep.settled).toMatchObject([{ outcome: "rescheduled" }]);
    expect(asleep.attempts).toBe(0);
    hours(3_600_000);
    await b.drain();
    expect((await b.task("t")).state).toBe("scheduled");
    hours(3_600_001);
    expect(await drainUntil(b, "t", "completed")).toMatchObject({ result: "awake" });
  });
});

test("what comes early is kept, and each wait takes the next of its name", async () => {
  const agent = agentOf(async ({ waitFor, step }) => {
    const first = await waitFor("n");
    await step("between", () => 1);
    return [first, await waitFor("n"), await waitFor("other")];
  });
  await using b = await bench(nats, "nats-kv", agent);
  await b.submit({}, { id: "t" });
  await signal(b.deps, "t", "n", 1);
  await signal(b.deps, "t", "other", { deep: [true] });
  await drainUntil(b, "t", "waiting");
  await signal(b.deps, "t", "n", 2);
  expect(await drainUntil(b, "t", "completed")).toMatchObject({ result: [1, 2, { deep: [true] }] });
  await expect(signal(b.deps, "t", "n", 3)).rejects.toMatchObject({ code: "illegal_transition" });
  await expect(signal(b.deps, "nobody", "n", 3)).rejects.toMatchObject({ code: "task_unknown" });
});

test("what comes while the task makes ready to wait is not overlooked", async () => {
  const agent = agentOf(({ waitFor }) => waitFor("go"));
  await using b = await bench(nats, "nats-kv", agent);
  const { store } = b.deps;
  let sent = false;
  const replace: TaskStore["replace"] = async (task, seen) => {
    if (task.state === "waiting" && !sent) {
      sent = true;
      // It still is running when this is written: nobody is woken by it.
      expect((await signal({ ...b.deps, store }, "t", "go", "now")).state).toBe("running");
    }
    return store.replace(task, seen);
  };
  Object.assign(b.deps, { store: { ...store, replace } });
  await b.submit({}, { id: "t" });
  expect(await drainUntil(b, "t", "completed")).toMatchObject({ result: "now", dispatches: 1 });
});

test("a rejection and a time-out fail the task, unless its handler catches them", async () => {
  const asked = agentOf(({ approval }) => approval("publish", { timeout: "1m" }));
  const catching = agentOf(async ({ approval }: AgentContext<unknown>) => {
    try {
      return await approval("publish", { timeout: "1m" });
    } catch (error) {
      return (error as { code: string }).code;
    }
  });
  for (const [agent, expected] of [
    [asked, { state: "failed", error: { code: "approval_rejected" } }],
    [catching, { state: "completed", result: "approval_rejected" }],
  ] as const) {
    await using b = await bench(nats, "nats-kv", agent);
    await b.submit({}, { id: "t" });
    await drainUntil(b, "t", "waiting");
    await signal(b.deps, "t", approvalSignal("publish"), { approved: false, by: "bob" });
    expect(await drainUntil(b, "t", expected.state)).toMatchObject(expected);
  }
  await using late = await bench(nats, "nats-kv", asked);
  const minutes = travel(late.deps);
  await late.submit({}, { id: "t" });
  await drainUntil(late, "t", "waiting");
  minutes(60_001);
  expect(await drainUntil(late, "t", "failed")).toMatchObject({ error: { code: "approval_timeout" } });
});

test("an effect in doubt goes on as a person says, try by try", async () => {
  let tries = 0;
  const agent = agentOf(({ effect }) =>
    effect("post", {
      run: () => {
        tries++;
        if (tries < 3) throw new Error("reset");
        return { tries };
      },
    }),
  );
  await using b = await bench(nats, "nats-kv", agent);
  await b.submit({}, { id: "t" });
  await drainUntil(b, "t", "in_doubt");
  expect(tries).toBe(1);
  // "It did not" is said of this try only: the next one, in doubt again, is a new question.
  await resolve(b.deps, "t", { happened: false });
  await drainUntil(b, "t", "in_doubt");
  expect([tries, (await b.task("t")).attempts]).toEqual([2, 2]);
  await resolve(b.deps, "t", { happened: true, receipt: { by: "hand" } });
  expect(await drainUntil(b, "t", "completed")).toMatchObject({ result: { by: "hand" } });
  expect(tries).toBe(2);
  await expect(resolve(b.deps, "t", { happened: false })).rejects.toMatchObject({
    code: "illegal_transition",
  });

  tries = 0;
  await b.submit({ other: 1 }, { id: "u" });
  await drainUntil(b, "u", "in_doubt");
  await resolve(b.deps, "u", { fail: true });
  expect(await b.task("u")).toMatchObject({ state: "failed", error: { code: "effect_in_doubt" } });
});

describe("child tasks", () => {
  const CHILD = "child";
  const parent = agentOf(
    async ({ submit, attempt }) => {
      const children = [];
      for (const n of [1, 2, 3]) children.push(await submit(CHILD, { n }, { key: `n${n}` }));
      if (attempt === 1) throw new Error("starts anew");
      return Promise.all(children.map((child) => child.result()));
    },
    { attempts: 2 },
  );

  async function family(run: (n: number) => unknown) {
    const b = await bench(nats, "nats-kv", parent, { stopGrace: 300 });
    const child = agentOf(({ input }) => run((input as { n: number }).n));
    const { namespace, generation } = b.deps.settings;
    await b.deps.bus.ensure({ namespace, agent: CHILD, lane: 0, generation });
    Object.assign(b.deps, { lanesOf: (name: string) => (name === CHILD ? 1 : undefined) });
    const { serve } = await import("../../shared/runner/serve.ts");
    const never = new AbortController().signal;
    return Object.assign(b, {
      children: () => serve(b.deps, { name: CHILD, agent: child, mode: "drain", stop: never }),
    });
  }

  test("are submitted once however often the parent starts, and awaited without holding its lane", async () => {
    const ran: number[] = [];
    await using b = await family((n) => {
      ran.push(n);
      return n * 10;
    });
    await b.submit({}, { id: "t" });
    await drainUntil(b, "t", "waiting");
    expect(await b.deps.bus.state(b.queue)).toEqual(empty);
    await b.children();
    // The children's word is enough: nobody had to look.
    expect(await drainUntil(b, "t", "completed")).toMatchObject({ result: [10, 20, 30] });
    expect(ran).toEqual([1, 2, 3]);
  });

  test("that fail are told to the parent", async () => {
    await using b = await family((n) => {
      if (n === 2) throw Object.assign(new Error("no"), {});
      return n;
    });
    await b.submit({}, { id: "t" });
    await until("it failed", async () => {
      await b.drain();
      await b.children();
      return (await b.task("t")).state === "failed";
    });
    expect(await b.task("t")).toMatchObject({
      error: { code: "child_failed", message: expect.stringMatching(/attempts_exhausted: Failed 3 times/) },
    });
  });

  test("whose word got lost are found when the parent looks", async () => {
    await using b = await family((n) => n);
    const minutes = travel(b.deps);
    await b.submit({}, { id: "t" });
    await drainUntil(b, "t", "waiting");
    const { store } = b.deps;
    // The parent's document can't be written while the children end.
    Object.assign(b.deps, {
      store: { ...store, get: async (id: string) => (id === "t" ? undefined : store.get(id)) },
    });
    await b.children();
    Object.assign(b.deps, { store });
    await b.drain();
    expect((await b.task("t")).state).toBe("waiting");
    minutes(300_001);
    expect(await drainUntil(b, "t", "completed")).toMatchObject({ result: [1, 2, 3] });
  });

  test("of an agent that is not there fail by name", async () => {
    await using b = await bench(
      nats,
      "nats-kv",
      agentOf(({ submit }) => submit("nobody", {}, { key: "k" })),
    );
    await b.submit({}, { id: "t" });
    await b.drain();
    expect(await b.task("t")).toMatchObject({ state: "failed", error: { code: "agent_unknown" } });
  });
});
