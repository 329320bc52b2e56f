import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { cancel, signal } from "../../shared/dispatch/operate.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { PawlError } from "../../shared/errors/errors.ts";
import { NO_COST } from "../../shared/journal/cost.ts";
import { openJournal } from "../../shared/journal/journal.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import type { Running } from "../../shared/task/document.ts";
import { approvalSignal } from "../../shared/task/signals.ts";
import { runAgent } from "../../shared/testing.ts";
import { AGENT, agentOf, bench } from "../support/bench.ts";
import { testNats } from "../support/servers/stores.ts";
import { travel } from "../support/time/clocks.ts";
import { until } from "../support/time/until.ts";

const later = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe("a handler in several branches", () => {
  test("suspends only when none of them goes on, and no step runs twice", async () => {
    const ran: string[] = [];
    const agent = agentOf(async ({ waitFor, step }) => {
      const branch = async () => {
        await step("a", () => void ran.push("a"));
        await step("b", async () => {
          await later(20);
          ran.push("b");
        });
      };
      const [event] = await Promise.all([waitFor("x"), branch()]);
      return event;
    });
    expect(await runAgent(agent, {}, { events: { x: 7 } })).toMatchObject({ state: "completed", result: 7 });
    expect(ran).toEqual(["a", "b"]);
  });

  test("that has its answer from one of them does not wait for the other", async () => {
    const agent = agentOf(({ waitFor, step }) => Promise.race([waitFor("never"), step("s", () => "done")]));
    expect(await runAgent(agent, {})).toMatchObject({ state: "completed", result: "done", executions: 1 });
  });

  test("goes on with whichever answer comes, or when the first time is over", async () => {
    const either = agentOf(({ waitFor }) => Promise.race([waitFor("a"), waitFor("b")]));
    expect(await runAgent(either, {}, { events: { b: "from b" } })).toMatchObject({ result: "from b" });
    const timed = agentOf(({ approval, sleep }) =>
      Promise.race([approval("go"), sleep("1h").then(() => "too late")]),
    );
    const run = await runAgent(timed, {});
    expect(run).toMatchObject({ state: "completed", result: "too late" });
    expect(run.elapsed).toBe(3_600_000);
  });

  test("is in doubt even where another branch waits", async () => {
    let isFirst = true;
    const agent = agentOf(
      async ({ waitFor, effect }) => {
        const post = effect("post", {
          run: () => {
            if (isFirst) {
              isFirst = false;
              throw new Error("reset");
            }
          },
        });
        await Promise.all([waitFor("x"), post]);
      },
      { attempts: 5 },
    );
    expect(await runAgent(agent, {})).toMatchObject({ state: "in_doubt" });
  });

  test("that waits inside a step is told so instead of hanging", async () => {
    for (const inner of ["waitFor", "sleep", "approval"] as const) {
      const agent = agentOf((context) =>
        context.step("outer", () => context[inner]("1h") as Promise<unknown>),
      );
      expect(await runAgent(agent, {}), inner).toMatchObject({
        state: "failed",
        error: { code: "call_invalid", message: expect.stringMatching(/inside a step, effect or tool/) },
      });
    }
  });

  test("replays in another order than it ran, and that is no mismatch", async () => {
    const agent = agentOf(async ({ step, sleep }) => {
      const one = async () => {
        for (const n of [1, 2, 3]) await step(`s${n}`, () => n);
      };
      const two = async () => {
        await step("t1", () => later(30));
        await step("t2", () => 2);
      };
      await Promise.all([one(), two()]);
      await sleep("1h");
      await step("last", () => 1);
      return "done";
    });
    expect(await runAgent(agent, {})).toMatchObject({ state: "completed", result: "done" });
  });

  test.each(["all", "allSettled", "any"] as const)(
    "whose calls come one after the other, in an order that what they await decides (Promise.%s), is no mismatch",
    async (how) => {
      let starts = 0;
      const ran: string[] = [];
      const agent = agentOf(async ({ step }) => {
        const isFirst = ++starts === 1;
        const branch = async (name: string, ms: number) => {
          await later(ms);
          await step(name, () => void ran.push(name));
          if (how === "any") await later(1_000);
        };
        // The one that was first is second when the handler starts anew.
        const branches = [branch("a", isFirst ? 1 : 80), branch("b", isFirst ? 300 : 1)];
        await (Promise[how] as (all: Promise<void>[]) => Promise<unknown>)(branches);
        return step("last", () => "done");
      });
      const run = await runAgent(agent, {}, { crashAfter: "step:a" });
      expect(run).toMatchObject({ state: "completed", result: "done", executions: 2 });
      expect(ran.toSorted()).toEqual(["a", "b"]);
    },
  );

  test("that awaits each call by itself and has changed is told so, also after branches", async () => {
    let starts = 0;
    const agent = agentOf(async ({ step }) => {
      const isFirst = ++starts === 1;
      await step(isFirst ? "old" : "new", () => 1);
      return step("last", () => 2);
    });
    const run = await runAgent(agent, {}, { crashAfter: "step:old" });
    expect(run).toMatchObject({ state: "failed", error: { code: "journal_mismatch" } });
  });

  test("that fails in one is over when the others are: what they did is stored", async () => {
    let posts = 0;
    const agent = agentOf(
      async ({ effect, step, attempt }) => {
        const slow = effect("post", {
          run: async () => {
            await later(100);
            return ++posts;
          },
        });
        const bad = step("bad", async () => {
          // When the effect is under way, and long before it is over.
          await later(20);
          if (attempt === 1) throw new Error("fails fast");
        });
        const [receipt] = await Promise.all([slow, bad]);
        return receipt;
      },
      { attempts: 2 },
    );
    expect(await runAgent(agent, {})).toMatchObject({ state: "completed", result: 1 });
    expect(posts).toBe(1);
  });

  test("needs a name of its own for each effect: ordinals could be mixed up", async () => {
    const agent = agentOf(async ({ effect, step }) => {
      const mail = async (who: string) => {
        await step(`address of ${who}`, () => who);
        await effect("mail", { run: () => who });
      };
      await Promise.all(["ann", "bob"].map(mail));
    });
    expect(await runAgent(agent, {})).toMatchObject({
      state: "failed",
      error: {
        code: "call_invalid",
        message: expect.stringMatching(/effect "mail" is called again .* Give each a name/),
      },
    });
    const loop = agentOf(async ({ effect }) => {
      for (const who of ["ann", "bob"]) await effect("mail", { run: () => who });
      return "one by one";
    });
    expect(await runAgent(loop, {})).toMatchObject({ state: "completed" });
  });

  test("that returned and forgot a call is completed all the same", async () => {
    const agent = agentOf(({ step }) => {
      void step("forgotten", () => new Promise(() => {})).catch(() => {});
      return "done";
    });
    expect(await runAgent(agent, {})).toMatchObject({ state: "completed", result: "done" });
  });
});

describe("on real servers", () => {
  let nats: LocalNats;
  beforeAll(async () => {
    nats = await testNats();
  });
  afterAll(() => nats.stop());

  test("300 steps at once with results that fill a head many times over", async () => {
    const agent = agentOf(async ({ step }) => {
      const all = Array.from({ length: 300 }, (_, i) => step(`s${i}`, () => `${i}`.padEnd(7_900, "x")));
      return (await Promise.all(all)).length;
    });
    await using b = await bench(nats, "nats-kv", agent);
    await b.submit({}, { id: "t" });
    await b.drain();
    expect(await b.task("t")).toMatchObject({ state: "completed", result: 300, journaled: 300 });
  });

  test("a task of the same id as one that was forgotten has a journal of its own", async () => {
    const ran: string[] = [];
    const agent = agentOf(({ step }) => step("s", () => ran.push("again")));
    await using b = await bench(nats, "nats-kv", agent);
    // Left by a task that retention removed: with a higher fence, and a step of the same name.
    const old = {
      id: "t",
      fence: 9,
      epoch: 0,
      createdAt: 1,
      fresh: true,
      signals: [],
      spent: NO_COST,
      saved: NO_COST,
    } as unknown as Running;
    const journal = await openJournal(b.deps, old, 1, () => {});
    await journal.append({ kind: "step", key: "s#1", at: 0, alone: true, value: "stale" });
    await b.submit({}, { id: "t" });
    await b.drain();
    expect(await b.task("t")).toMatchObject({ state: "completed", result: 1, fence: 1 });
    expect(ran).toEqual(["again"]);
  });

  test("an approval that is said twice answers one question", async () => {
    const agent = agentOf(async ({ approval }) => [await approval("go"), await approval("go")]);
    await using b = await bench(nats, "nats-kv", agent);
    await b.submit({}, { id: "t" });
    await b.drain();
    const yes = { approved: true, by: "ann" };
    for (let i = 0; i < 3; i++) await signal(b.deps, "t", approvalSignal("go"), yes);
    await b.drain();
    expect(await b.task("t")).toMatchObject({ state: "waiting", waitingFor: ["approval:go"] });
    await signal(b.deps, "t", approvalSignal("go"), yes);
    await b.drain();
    expect(await b.task("t")).toMatchObject({ state: "completed" });
  });

  test("a cancel that comes while the task makes ready to wait is not overlooked", async () => {
    const agent = agentOf(({ waitFor }) => waitFor("go"));
    await using b = await bench(nats, "nats-kv", agent);
    const { store } = b.deps;
    let isSent = false;
    const replace: TaskStore["replace"] = async (task, seen) => {
      if (task.state === "waiting" && !isSent) {
        isSent = true;
        await cancel({ ...b.deps, store }, "t");
      }
      return store.replace(task, seen);
    };
    Object.assign(b.deps, { store: { ...store, replace } });
    await b.submit({}, { id: "t" });
    await until("it is cancelled", async () => {
      await b.drain();
      return (await b.task("t")).state === "cancelled";
    });
  });

  test("a task for later whose first dispatch found no server is dispatched by the next sweep", async () => {
    await using b = await bench(
      nats,
      "nats-kv",
      agentOf(() => "done"),
    );
    const pass = travel(b.deps);
    await b.submit({}, { id: "t", at: Date.now() + 600_000 });
    pass(601_000);
    const away = () => Promise.reject(new PawlError("bus_unavailable", "away"));
    await dispatchDue({ ...b.deps, bus: { ...b.deps.bus, publish: away } }, AGENT);
    expect(await b.task("t")).toMatchObject({ state: "dispatched", dispatches: 1 });
    pass(61_000);
    expect(await dispatchDue(b.deps, AGENT)).toBe(1);
    await b.drain();
    expect(await b.task("t")).toMatchObject({ state: "completed" });
  });
});
