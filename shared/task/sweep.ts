import type { Millis, Task } from "./document.ts";

/**
 * How long a dispatched task may be without a carrier before somebody looks whether its message exists: its dispatcher
 * may have died between the write and the publish.
 */
export const ORPHAN_AFTER = 60_000;

export type SweptState = "scheduled" | "dispatched" | "waiting";

/** When a task wants to be looked at, if nothing happens to it before. A submit's own dispatch is its caller's to repeat. */
export function sweepAt(task: Task): Millis | undefined {
  if (task.state === "scheduled" || task.state === "waiting") return task.dueAt;
  const isUnclaimed = task.state === "dispatched" && task.seq === undefined && task.history.length > 1;
  return isUnclaimed ? task.updatedAt + ORPHAN_AFTER : undefined;
}
