import type { Dispatched, Millis, Running, SettledAs, State, Task } from "./document.ts";
import { progressOf } from "./endings.ts";
import { isSettled } from "./settled.ts";

export interface Arrival {
  readonly agent: string;
  readonly queue: string;
  readonly seq: number;
  /** From the message's header; 0 when it was published directly. */
  readonly dispatch: number;
  readonly inputHash: string;
}

/** A message, as far as a task may know it. */
type Message = Pick<Arrival, "queue" | "seq" | "dispatch">;

/**
 * Whether a message is the one that carries the task now. Where the document knows its sequence, that alone tells: also
 * of one that was published directly, and counts as no dispatch. Else it is the message of the last dispatch, which was
 * published, or is about to be.
 */
export function isCarrier(task: Task, { queue, seq, dispatch }: Message): boolean {
  if (task.state !== "dispatched" && task.state !== "running") return false;
  if (task.seq !== undefined) return task.queue === queue && task.seq === seq;
  return dispatch > 0 && dispatch === task.dispatches;
}

/** A document as it was read, with what its reader needs of it beside. */
interface Seen {
  readonly task: Task;
}

/** What a message means, given the document it finds; with that document, now that its state is known. */
export type Decision<S extends Seen = Seen> =
  | { readonly kind: "claim"; readonly seen: S & { readonly task: Dispatched } }
  | { readonly kind: "takeover"; readonly seen: S & { readonly task: Running } }
  | { readonly kind: "crashLoop"; readonly seen: S & { readonly task: Running }; readonly starts: number }
  | { readonly kind: "create" }
  | { readonly kind: "missing" }
  | { readonly kind: "later"; readonly ms: number }
  | { readonly kind: "skip"; readonly seen: S }
  | { readonly kind: "surplus"; readonly seen: S; readonly outcome: SurplusAs };

/** What a message is settled as that has nothing to run. */
export type SurplusAs = Extract<SettledAs, "duplicate" | "conflict" | "cancelled" | "failed" | "rescheduled">;

export function decide<S extends Seen>(
  seen: S | undefined,
  arrival: Arrival,
  limits: {
    now: Millis;
    crashLimit: number;
    /** How far its journal has come by now, once somebody looked. */
    progress?: number;
  },
): Decision<S> {
  if (!seen) return arrival.dispatch > 0 ? { kind: "missing" } : { kind: "create" };
  const { task } = seen;
  if (isSettled(task, arrival.queue, arrival.seq)) return { kind: "skip", seen };
  const isSameWork = task.agent === arrival.agent && task.inputHash === arrival.inputHash;
  if (!isSameWork) return { kind: "surplus", seen, outcome: "conflict" };
  switch (task.state) {
    case "dispatched":
      // Whatever its sequence, an unsettled message is as good a carrier as the one that got lost.
      if (task.dueAt !== undefined && task.dueAt > limits.now) {
        return { kind: "later", ms: task.dueAt - limits.now };
      }
      return { kind: "claim", seen: { ...seen, task } };
    case "running":
      // Only the carrier's redelivery says that the holder fell silent; another message says nothing of it.
      if (!isCarrier(task, arrival)) return { kind: "surplus", seen, outcome: "duplicate" };
      if (task.silentStarts >= limits.crashLimit && !((limits.progress ?? 0) > progressOf(task)))
        return { kind: "crashLoop", seen: { ...seen, task }, starts: task.silentStarts };
      return { kind: "takeover", seen: { ...seen, task } };
    // In every other state there is nothing for a message to run.
    default:
      return { kind: "surplus", seen, outcome: surplusAs(task, arrival) };
  }
}

/** What became of a task while the message that was to carry it lay in its queue. */
const MEANWHILE: Partial<Record<State, SurplusAs>> = {
  cancelled: "cancelled",
  failed: "failed",
  // The publish was taken back, and the message was there after all.
  scheduled: "rescheduled",
};

/**
 * What a message of the same work is settled as, in a document that has nothing for it to run. It is no duplicate if it
 * carries a dispatch of this task and nothing settled yet carried that one or a later one: then it is the task's own,
 * and shares its fate. A message of an earlier dispatch than one that is settled was replaced: whatever it was, it is
 * one too many.
 *
 * Settlements that were paged out are not asked. They are older than those in the document, so of a later dispatch there
 * is one in the document, unless dozens of duplicates came since. Then the carrier's own redelivery, were its ack lost
 * for so long, is settled again by what became of its task: the same sequence is counted once all the same.
 */
export function surplusAs(task: Task, { dispatch }: Pick<Arrival, "dispatch">): SurplusAs {
  const isOwn = dispatch > 0 && dispatch <= task.dispatches;
  const isReplaced = task.settled.some((one) => one.dispatch >= dispatch);
  return (isOwn && !isReplaced && MEANWHILE[task.state]) || "duplicate";
}
