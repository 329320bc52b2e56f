import type { Millis, Task } from "./document.ts";

/**
 * How long a task may be dispatched or running before somebody looks whether its message exists: its dispatcher may
 * have died between the write and the publish, or its stream have lost it.
 */
export const ORPHAN_AFTER = 60_000;

export type SweptState = Exclude<Task["state"], "completed" | "cancelled">;

/** When a task wants to be looked at, if nothing happens to it before. */
export function sweepAt(task: Task): Millis | undefined {
  switch (task.state) {
    case "scheduled":
      return task.dueAt;
    case "dispatched":
      return Math.max(task.updatedAt, task.dueAt ?? 0) + ORPHAN_AFTER;
    case "running":
      return task.updatedAt + ORPHAN_AFTER;
    case "waiting":
      return earlier(task.dueAt, task.untold?.dueAt);
    case "in_doubt":
    case "failed":
      return task.untold?.dueAt;
    case "completed":
    case "cancelled":
      return undefined;
    default:
      return task satisfies never;
  }
}

function earlier(a: Millis | undefined, b: Millis | undefined): Millis | undefined {
  return a === undefined || b === undefined ? (a ?? b) : Math.min(a, b);
}
