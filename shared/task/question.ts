import type { Task } from "./document.ts";

/**
 * Names the question that a form answers: the write by which the task came into the state that it is in. A task that
 * has moved on, or asks again, is another question, and not answered by a form that was made before.
 */
export function questionOf({ history, state }: Task): string {
  const last = history.findLastIndex((one) => one.state !== state);
  return history[last + 1]?.stamp ?? "";
}
