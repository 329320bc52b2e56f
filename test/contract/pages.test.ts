import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { submitted } from "../../shared/task/create.ts";
import type { Task } from "../../shared/task/document.ts";
import { apply } from "../../shared/task/transitions.ts";
import { stores, testNats, wired, world } from "../support/servers/stores.ts";

/** What a page may hold: a Worker has 128 MB for everything, and a document is there as bytes, text and object. */
const MOST = { firestore: 8_400_000, "firestore-rest": 8_400_000, "nats-kv": 16_400_000 };
const COUNT = 34;
const AGENTS = ["big", "small"] as const;

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** The big ones together are more than a page may hold on Firestore. */
function scheduled(i: number): Task {
  const mark = { now: Date.now(), stamp: crypto.randomUUID(), by: "test" };
  const agent = AGENTS[i % 8 === 7 ? 1 : 0];
  const input = { text: "x".repeat(agent === "big" ? 300_000 : 10) };
  const id = `t${String(i).padStart(2, "0")}`;
  const task = submitted({ ...mark, id, agent, lane: 0, input, inputHash: "h", at: mark.now }, "Q");
  return apply(task, { type: "rollback", dueAt: Date.now() - COUNT + i, note: "test" }, mark);
}

const sizeOf = (tasks: readonly unknown[]) => JSON.stringify(tasks).length;

describe.each(stores)("$kind", ({ kind, here }) => {
  test.skipIf(!here)("pages of large documents are bounded in bytes, and complete", async () => {
    await using deps = await wired(world(nats, kind).config);
    const ids: string[] = [];
    for (let i = 0; i < COUNT; i += 2) {
      const two = [scheduled(i), scheduled(i + 1)];
      ids.push(...two.map(({ id }) => id));
      await Promise.all(two.map((task) => deps.store.create(task)));
    }
    for (const filter of [{}, { agents: AGENTS }]) {
      const listed: Task[] = [];
      let pages = 0;
      for (let cursor: string | undefined; pages === 0 || cursor; pages++) {
        const page = await deps.store.list(filter, 500, cursor);
        expect(sizeOf(page.tasks)).toBeLessThan(MOST[kind]);
        listed.push(...page.tasks);
        cursor = page.cursor;
      }
      expect(listed.map(({ id }) => id).sort()).toEqual(ids);
      const times = listed.map(({ updatedAt }) => updatedAt);
      if (kind !== "nats-kv") expect(times).toEqual(times.toSorted((a, b) => b - a));
      expect(pages).toBeLessThan(COUNT);
    }
    const due: string[] = [];
    for (let after = 0, isLeft = true; isLeft; ) {
      const page = await deps.store.due("big", "scheduled", { after, until: Date.now() }, 100);
      expect(sizeOf(page.tasks)).toBeLessThan(MOST[kind]);
      due.push(...page.tasks.map(({ task }) => task.id));
      after = Math.max(...page.tasks.map(({ task }) => (task.state === "scheduled" ? task.dueAt : 0)));
      isLeft = page.isCut;
    }
    expect(due).toEqual(ids.filter((_, i) => i % 8 !== 7));
  });
});
