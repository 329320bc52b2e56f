import { expect } from "vitest";
import type { Found, TaskStore } from "../../../shared/ports/store.ts";
import { submitted } from "../../../shared/task/create.ts";
import type { Task } from "../../../shared/task/document.ts";
import { apply } from "../../../shared/task/transitions.ts";

const mark = () => ({ now: Date.now(), stamp: crypto.randomUUID(), by: "test" });

export function newTask(id: string, chars = 1): Task {
  const { now: at, stamp, by } = mark();
  const input = { text: "x".repeat(chars) };
  return submitted({ id, agent: "a", lane: 0, input, inputHash: "h", at, stamp, by }, "Q");
}

export const named = (count: number) =>
  Array.from({ length: count }, (_, i) => `t${String(i).padStart(4, "0")}`);

export async function manyAtOnce(
  ids: readonly string[],
  work: (id: string) => Promise<unknown>,
): Promise<void> {
  for (let i = 0; i < ids.length; i += 50) await Promise.all(ids.slice(i, i + 50).map(work));
}

export const create = (store: TaskStore, ids: readonly string[], chars = 1) =>
  manyAtOnce(ids, (id) => store.create(newTask(id, chars)));

/** Writes a task again, and says at which revision it is from then on. */
export async function rewrite(store: TaskStore, id: string): Promise<string> {
  const stored = await store.get(id);
  if (!stored) throw new Error(`no task ${id}`);
  const next = apply(stored.task, { type: "publishDuplicate", layer: "window" }, mark());
  const written = await store.replace(next, stored.revision);
  if (written.kind !== "written") throw new Error(`${id} was not written`);
  return written.revision;
}

export interface Pass {
  readonly found: readonly Found[];
  readonly cursor: string;
  readonly pages: number;
}

/** Page after page to the last. */
export async function passFrom(
  store: TaskStore,
  after: string | undefined,
  limit: number,
  between: (page: number) => Promise<void> = async () => {},
): Promise<Pass> {
  const found: Found[] = [];
  for (let cursor = after, pages = 1; ; pages++) {
    const page = await store.changes(cursor, limit);
    expect(page.documents.length).toBeLessThanOrEqual(limit);
    found.push(...page.documents);
    if (page.isLast) return { found, cursor: page.cursor, pages };
    cursor = page.cursor;
    expect(pages).toBeLessThan(1_000);
    await between(pages);
  }
}

export const keysOf = ({ found }: Pass) => found.map(({ key }) => key);

/** What the reader of a pass knows in the end: the newest that it was given of each. */
export const newest = ({ found }: Pass) => new Map(found.map(({ key, revision }) => [key, revision]));
