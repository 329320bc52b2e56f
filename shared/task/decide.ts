import type { Millis, Task } from "./document.ts";
import { isSettled } from "./settled.ts";

export interface Arrival {
  readonly agent: string;
  readonly queue: string;
  readonly seq: number;
  /** From the message's header; 0 when it was published directly. */
  readonly dispatch: number;
  readonly inputHash: string;
}

/** What a message means, given the document it finds. */
export type Decision =
  | { readonly kind: "claim" }
  | { readonly kind: "takeover" }
  | { readonly kind: "crashLoop"; readonly starts: number }
  | { readonly kind: "create" }
  | { readonly kind: "missing" }
  | { readonly kind: "later"; readonly ms: number }
  | { readonly kind: "skip" }
  | { readonly kind: "surplus"; readonly outcome: "duplicate" | "conflict" };

export function decide(
  task: Task | undefined,
  arrival: Arrival,
  limits: {
    now: Millis;
    crashLimit: number;
    /** Entries in its journal now, once somebody looked. */
    journaled?: number;
  },
): Decision {
  if (!task) return arrival.dispatch > 0 ? { kind: "missing" } : { kind: "create" };
  if (isSettled(task, arrival.queue, arrival.seq)) return { kind: "skip" };
  const isSameWork = task.agent === arrival.agent && task.inputHash === arrival.inputHash;
  if (!isSameWork) return { kind: "surplus", outcome: "conflict" };
  const duplicate = { kind: "surplus", outcome: "duplicate" } as const;

  switch (task.state) {
    case "dispatched":
      // Whatever its sequence, an unsettled message is as good a carrier as the one that got lost.
      if (task.dueAt !== undefined && task.dueAt > limits.now) {
        return { kind: "later", ms: task.dueAt - limits.now };
      }
      return { kind: "claim" };
    case "running":
      // Only the carrier's redelivery says that the holder fell silent; another message says nothing of it.
      if (task.queue !== arrival.queue || task.seq !== arrival.seq) return duplicate;
      if (task.silentStarts >= limits.crashLimit && !((limits.journaled ?? 0) > task.journaled))
        return { kind: "crashLoop", starts: task.silentStarts };
      return { kind: "takeover" };
    case "scheduled":
    case "waiting":
    case "in_doubt":
    case "completed":
    case "failed":
    case "cancelled":
      return duplicate;
    default:
      return task satisfies never;
  }
}
