import type { Task } from "./document.ts";

/** The name of the signal that answers an approval. */
export function approvalSignal(name: string): string {
  return `approval:${name}`;
}

/** The name of the signal by which a child task tells its parent that it is over. */
export function childSignal(childId: string): string {
  return `child:${childId}`;
}

/** Whether it may be sent as an event: the names of approvals, children and resolutions are Pawl's own. */
export function isEventName(name: string): boolean {
  return !/^(approval:|child:|effect )/.test(name);
}

/**
 * Names the question that a form answers: the write by which the task came into the state that it is in. A task that
 * has moved on, or asks again, is another question, and not answered by a form that was made before.
 */
export function questionOf({ history, state }: Task): string {
  const last = history.findLastIndex((one) => one.state !== state);
  return history[last + 1]?.stamp ?? "";
}
