import type { TaskStore } from "../ports/store.ts";
import type { Task } from "../task/document.ts";
import type { Entry, Head } from "./entries.ts";

/** However long a journal is, whoever shows it reads its newest entries and so many pages before them. */
const MOST_PAGES = 2;

export interface Newest {
  readonly head: Head;
  readonly entries: readonly Entry[];
  /** How many older ones were not read. */
  readonly before: number;
}

/** The newest part of a task's journal; undefined where the journal was started again since, or belongs to an earlier task. */
export async function newestOf(
  store: Pick<TaskStore, "getHead" | "getPart">,
  task: Task,
): Promise<Newest | undefined> {
  const head = (await store.getHead(task.id))?.head;
  if (!head || head.born !== task.createdAt || head.epoch !== task.epoch) return undefined;
  const pages = await Promise.all(
    head.pages.slice(-MOST_PAGES).map(async (name) => {
      const text = await store.getPart(task.id, name);
      return text === undefined ? [] : (JSON.parse(text) as Entry[]);
    }),
  );
  const entries = [...pages.flat(), ...head.recent];
  return { head, entries, before: head.count - entries.length };
}
