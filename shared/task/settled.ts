import { sha256 } from "../values/json.ts";
import type { Settlement, Task } from "./document.ts";

/** How many settlements stay in the document; older ones are paged out in full pages. */
export const SETTLED_INLINE = 64;
export const SETTLED_PAGE = 32;

export function isSettled(task: Task, queue: string, seq: number): boolean {
  return task.settled.some((entry) => entry.queue === queue && entry.seq === seq);
}

export function settle(settled: readonly Settlement[], entry: Settlement): readonly Settlement[] {
  const known = settled.some((other) => other.queue === entry.queue && other.seq === entry.seq);
  return known ? settled : [...settled, entry];
}

/** Of a page, and of all before it. */
export function pageHash(before: string | undefined, page: string): string {
  return sha256(`${before ?? ""}\n${page}`).slice(0, 32);
}

export const pageName = (page: number) => `settled-${page}`;

/**
 * Splits the oldest page off a document that holds too many. The list only ever grows at its end, so page n has the
 * same content whoever writes it: it is stored first, and a crash before the document follows loses nothing.
 */
export function pageOut(
  task: Task,
): { task: Task; page: number; settled: readonly Settlement[] } | undefined {
  if (task.settled.length <= SETTLED_INLINE) return undefined;
  return {
    page: task.settledPages,
    settled: task.settled.slice(0, SETTLED_PAGE),
    task: { ...task, settled: task.settled.slice(SETTLED_PAGE), settledPages: task.settledPages + 1 },
  };
}
