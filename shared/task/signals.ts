import type { Task } from "./document.ts";

const APPROVAL = "approval:";
const CHILD = "child:";

/** The name of the signal that answers an approval. */
export function approvalSignal(name: string): string {
  return `${APPROVAL}${name}`;
}

/** What a signal is: the approval, the child or the event that it is about. */
export function signalParts(signal: string): {
  readonly kind: "approval" | "child" | "event";
  readonly name: string;
} {
  if (signal.startsWith(APPROVAL)) return { kind: "approval", name: signal.slice(APPROVAL.length) };
  if (signal.startsWith(CHILD)) return { kind: "child", name: signal.slice(CHILD.length) };
  return { kind: "event", name: signal };
}

/** Names are their author's, and may be anything: in a message each has so much room, and so many are named. */
const SHOWN = 100;
const MOST_NAMED = 5;

/** A signal as a message names it: approval "publish". */
export function signalText(signal: string): string {
  const { kind, name } = signalParts(signal);
  return `${kind} ${JSON.stringify(name.length > SHOWN ? `${name.slice(0, SHOWN)}…` : name)}`;
}

/** What a task waits for, as the rest of a sentence. */
export function waitsText(task: Task): string {
  if (task.state !== "waiting") return `is ${task.state} and waits for nothing now`;
  const named = task.waitingFor.slice(0, MOST_NAMED).map(signalText);
  const more = task.waitingFor.length - named.length;
  return `waits for ${named.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}

/** Whether a task waits for this signal. */
export function isAsked(task: Task, name: string): boolean {
  return task.state === "waiting" && task.waitingFor.includes(name);
}

/** The name of the signal by which a child task tells its parent that it is over. */
export function childSignal(childId: string): string {
  return `${CHILD}${childId}`;
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
