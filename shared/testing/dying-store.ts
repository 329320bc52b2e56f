import type { Entry } from "../journal/entries.ts";
import type { TaskStore } from "../ports/store.ts";

/** An entry of the journal: its number, or its kind and name, such as "step:read". */
export type CrashPoint = number | string;

/** Where a process dies, once. */
export interface Crash {
  readonly when: "before" | "after";
  readonly at: CrashPoint;
}

export function crashOf({
  crashBefore,
  crashAfter,
}: {
  crashBefore?: CrashPoint;
  crashAfter?: CrashPoint;
}): Crash | undefined {
  if (crashBefore !== undefined) return { when: "before", at: crashBefore };
  return crashAfter === undefined ? undefined : { when: "after", at: crashAfter };
}

/** At the point that the test names the process is no more: nothing returns. */
export function dyingStore(store: TaskStore, crash: Crash | undefined, die: () => void): TaskStore {
  if (!crash) return store;
  return {
    ...store,
    putHead: async (head, seen) => {
      const before = seen === undefined ? 0 : ((await store.getHead(head.taskId))?.head.count ?? 0);
      const added = head.recent.slice(Math.max(0, head.recent.length - (head.count - before)));
      const { at, when } = crash;
      const isPoint =
        typeof at === "number" ? before < at && head.count >= at : added.some((entry) => isAt(entry, at));
      if (isPoint && when === "before") return dead(die);
      const result = await store.putHead(head, seen);
      return isPoint ? dead(die) : result;
    },
  };
}

function dead(die: () => void): Promise<never> {
  die();
  return new Promise<never>(() => {});
}

function isAt({ kind, key }: Entry, point: string): boolean {
  const name = key.replace(/#\d+$/, "");
  return point === `${kind}:${name}` || point === `${kind}:${key}`;
}
