import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { type Agent, defineAgent } from "../../shared/agent.ts";
import { NO_COST } from "../../shared/journal/cost.ts";
import { openJournal } from "../../shared/journal/journal.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import type { Running } from "../../shared/task/document.ts";
import { isFinal } from "../../shared/task/table.ts";
import { agentOf, bench } from "../support/bench.ts";
import { away, disturbed } from "../support/faults/disturb.ts";
import { oneOfEach, testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const noGuard = () => {};
const free = { spent: NO_COST, saved: NO_COST };
const holder = (fence: number, fresh = false) =>
  ({
    id: "t",
    fence,
    epoch: 0,
    createdAt: 0,
    fresh,
    signals: [],
    history: [],
    ...free,
  }) as unknown as Running;

describe.each(oneOfEach)("$kind", ({ kind, here }) => {
  test.skipIf(!here)("a step that is stored is not run again, whatever fails after it", async () => {
    const ran: string[] = [];
    const agent = agentOf(
      async ({ step, attempt }) => {
        const one = await step("one", () => {
          ran.push("one");
          return { n: 1 };
        });
        const loop: number[] = [];
        for (let i = 0; i < 3; i++)
          loop.push(
            await step("loop", async () => {
              ran.push(`loop ${i}`);
              if (i === 1 && attempt === 1) throw new Error("not yet");
              return i * 10;
            }),
          );
        const nothing = await step("nothing", () => {
          ran.push("nothing");
        });
        return { one, loop, nothing: nothing === undefined };
      },
      { attempts: 5 },
    );
    await using b = await bench(nats, kind, agent);
    await b.submit({}, { id: "t" });
    await until("t is completed", async () => {
      await b.drain();
      return (await b.task("t")).state === "completed";
    });
    expect(ran).toEqual(["one", "loop 0", "loop 1", "loop 1", "loop 2", "nothing"]);
    expect(await b.task("t")).toMatchObject({
      result: { one: { n: 1 }, loop: [0, 10, 20], nothing: true },
      attempts: 1,
      journaled: 5,
    });
  });

  test.skipIf(!here)("a stale holder's entry is refused, and its successor never sees it", async () => {
    await using b = await bench(
      nats,
      kind,
      agentOf(() => 1),
    );
    const step = (key: string, at: number) => ({ kind: "step" as const, key, at, alone: true, value: key });
    const first = await openJournal(b.deps, holder(1, true), 1, noGuard);
    await first.append(step("a#1", 0));
    const second = await openJournal(b.deps, holder(2), 1, noGuard);
    await expect(first.append(step("b#1", 1))).rejects.toMatchObject({ code: "lease_lost" });
    await expect(first.append(step("c#1", 2))).rejects.toMatchObject({ code: "lease_lost" });
    await expect(openJournal(b.deps, holder(1), 1, noGuard)).rejects.toMatchObject({
      code: "lease_lost",
    });
    await second.append(step("b#1", 1));
    const third = await openJournal(b.deps, holder(3), 1, noGuard);
    expect(third.entries.map((entry) => entry.key)).toEqual(["a#1", "b#1"]);
    expect((await b.deps.store.getHead("t"))?.head).toMatchObject({ fence: 3, count: 2 });
  });

  test.skipIf(!here)("a holder that had nothing to list yet is shut out too", async () => {
    await using b = await bench(
      nats,
      kind,
      agentOf(() => 1),
    );
    const first = await openJournal(b.deps, holder(1, true), 1, noGuard);
    await openJournal(b.deps, holder(2), 1, noGuard);
    const late = first.append({ kind: "step", key: "a#1", at: 0, alone: true });
    await expect(late).rejects.toMatchObject({ code: "lease_lost" });
    // The next one was let go to, and knows of no entry: it finds the empty head, and lists on it.
    const third = await openJournal(b.deps, holder(3, true), 1, noGuard);
    await third.append({ kind: "step", key: "a#1", at: 0, alone: true });
    expect((await b.deps.store.getHead("t"))?.head).toMatchObject({ fence: 3, count: 1 });
  });

  test.skipIf(!here)(
    "large results are kept whole, in parts; over 16 MiB they are refused by name",
    async () => {
      const large = { text: `${"你好👩‍👩‍👧 ".repeat(160_000)}end` };
      let runs = 0;
      const agent = agentOf(
        async ({ step, attempt }) => {
          const value = await step("large", () => {
            runs++;
            return large;
          });
          if (attempt === 1) throw new Error("again");
          expect(value).toEqual(large);
          await step("huge", () => "x".repeat(16 * 1024 * 1024));
        },
        { attempts: 2 },
      );
      await using b = await bench(nats, kind, agent);
      await b.submit({}, { id: "t" });
      await until("t failed", async () => {
        await b.drain();
        return (await b.task("t")).state === "failed";
      });
      expect(runs).toBe(1);
      expect(await b.task("t")).toMatchObject({
        error: { code: "step_too_large", message: expect.stringMatching(/step huge#1 has 16777218 bytes/) },
      });
    },
  );
});

test.each([1, 2])("an answer lost by write %i of a journal changes nothing", async (n) => {
  for (const disturb of [
    async (write: () => ReturnType<TaskStore["putHead"]>) => {
      await write();
      throw away();
    },
    async () => {
      throw away();
    },
  ]) {
    await using b = await bench(
      nats,
      "nats-kv",
      agentOf(() => 1),
    );
    const deps = { ...b.deps, store: disturbed(b.deps.store, n, disturb) };
    const journal = await openJournal(deps, holder(1, true), 1, noGuard);
    for (const [at, key] of ["a#1", "b#1", "c#1"].entries())
      await journal.append({ kind: "step", key, at, alone: true });
    const again = await openJournal(b.deps, holder(2), 1, noGuard);
    expect(again.entries.map((entry) => entry.key)).toEqual(["a#1", "b#1", "c#1"]);
  }
});

test("parallel steps run at once, each once, and are listed together", async () => {
  const ran: number[] = [];
  let together = 0;
  let most = 0;
  const agent = agentOf(
    async ({ step, attempt }) => {
      const values = await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          step(`part ${i}`, async () => {
            most = Math.max(most, ++together);
            await new Promise((resolve) => setTimeout(resolve, 5));
            together--;
            ran.push(i);
            return i;
          }),
        ),
      );
      if (attempt === 1) throw new Error("again");
      return values;
    },
    { attempts: 2 },
  );
  await using b = await bench(nats, "nats-kv", agent);
  const store = disturbed(b.deps.store, 0, (write) => write());
  Object.assign(b.deps, { store });
  await b.submit({}, { id: "t" });
  await until("t is completed", async () => {
    await b.drain();
    return (await b.task("t")).state === "completed";
  });
  expect(ran.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, i) => i));
  expect(most).toBe(20);
  // One by one they would be twenty, and one more to open it again.
  expect(store.writes).toBeLessThan(12);
});

test("a handler without calls costs no read and no write of a journal, retries included", async () => {
  const agent = agentOf(({ attempt }) => {
    if (attempt === 1) throw new Error("again");
  });
  await using b = await bench(nats, "nats-kv", agent);
  let asked = 0;
  const { getHead, putHead } = b.deps.store;
  Object.assign(b.deps.store, {
    getHead: (id: string) => ++asked && getHead(id),
    putHead: (...args: Parameters<TaskStore["putHead"]>) => ++asked && putHead(...args),
  });
  await b.submit({}, { id: "t" });
  await until("t is completed", async () => {
    await b.drain();
    return (await b.task("t")).state === "completed";
  });
  expect(asked).toBe(0);
});

const cycle: { self?: unknown } = {};
cycle.self = cycle;

test.each([
  ["a function", () => 1, /step odd#1 is a function/],
  ["a date", { at: new Date() }, /step odd#1.at is a Date/],
  ["a cycle", cycle, /step odd#1.self.* nested more than 64 levels deep, or in a cycle/],
])("a result that JSON can't express fails the task by name: %s", async (_, value, message) => {
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(({ step }) => step("odd", () => value as unknown)),
  );
  await b.submit({}, { id: "t" });
  await b.drain();
  expect(await b.task("t")).toMatchObject({
    state: "failed",
    error: { code: "result_invalid", message: expect.stringMatching(message) },
  });
});

describe("code that changed while its task was under way", () => {
  const before = agentOf(async ({ step }) => {
    await step("fetch", () => 1);
    throw new Error("later");
  });
  const finish = async (agent: Agent) => {
    await using b = await bench(nats, "nats-kv", before);
    await b.submit({}, { id: "t" });
    await b.drain();
    await until("t is over", async () => {
      await b.drain(agent);
      return isFinal(await b.task("t"));
    });
    await b.submit({}, { id: "fresh" });
    await b.drain(agent);
    expect(await b.task("fresh")).toMatchObject({ state: "completed", result: "load" });
    return await b.task("t");
  };

  test("fails by both names", async () => {
    const changed = agentOf(({ step }) => step("load", () => "load"));
    expect(await finish(changed)).toMatchObject({
      state: "failed",
      error: {
        code: "journal_mismatch",
        message: expect.stringMatching(
          /handler is step load#1, but in this task's journal it is step fetch#1/,
        ),
      },
      journaled: 1,
    });
  });

  test("finishes on its journal where a version tells old tasks from new ones", async () => {
    const versioned = defineAgent({
      version: 2,
      run: ({ step, version }) => step(version < 2 ? "fetch" : "load", () => "load"),
    });
    expect(await finish(versioned)).toMatchObject({ state: "completed", result: 1 });
  });
});

test("a step called after the handler ended begins nothing", async () => {
  let late: Promise<unknown> | undefined;
  let ran = false;
  const agent = agentOf(({ step }) => {
    late = new Promise((resolve) => setTimeout(resolve, 50)).then(() =>
      step("late", () => {
        ran = true;
      }),
    );
    late.catch(() => {});
    return 1;
  });
  await using b = await bench(nats, "nats-kv", agent);
  await b.submit({}, { id: "t" });
  await b.drain();
  await expect(late).rejects.toThrow(/step late was called after the handler ended: await it/);
  expect(ran).toBe(false);
});
