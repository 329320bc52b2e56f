import { isPawlError, messageOf } from "../errors/errors.ts";
import { retry } from "../retry/retry.ts";
import type { Execution } from "./execution.ts";

/** What the broker is told about a message. "silent": the message is no longer ours to speak of. */
export type Word =
  | { readonly kind: "ack" }
  | { readonly kind: "nak"; readonly delayMs: number }
  | { readonly kind: "silent" };

/** What became of a message, in a word that doesn't change. */
export type HandledAs =
  | "completed"
  | "failed"
  | "retry"
  | "handed-off"
  | "sleeping"
  | "waiting"
  | "in-doubt"
  | "cancelled"
  | "skipped"
  | "surplus"
  | "dead-letter"
  | "not-due"
  | "put-back"
  /** This invocation has too little time left for it: one that has more takes it. */
  | "too-short"
  /** The store did not answer for a lease: another runner may reach it. */
  | "store-away"
  /** The task's document is sealed with a key that this function does not have: another function may have it. */
  | "other-key"
  | "abandoned"
  | "left";

export interface Recorded {
  readonly word: Word;
  readonly as: HandledAs;
  /** For people. */
  readonly detail?: string;
  /** When the task wants to be dispatched again. */
  readonly dueAt?: number;
}

/**
 * Says the word, until it is confirmed or as long as the message could still be ours. An ack that stays unconfirmed
 * costs nothing but a redelivery, which finds its sequence settled.
 */
export async function acknowledge(execution: Said, word: Word): Promise<boolean> {
  switch (word.kind) {
    case "silent":
      return false;
    case "ack":
      return confirm(execution, () => execution.delivery.ack());
    case "nak":
      // A +WPI that follows a nak would take it back.
      await execution.lease.stopBeats();
      return confirm(execution, () => putBack(execution, word.delayMs));
    default:
      return word satisfies never;
  }
}

type Said = Pick<Execution, "deps" | "delivery" | "lease">;

/**
 * Unlike an ack, a nak is not true whoever says it: on a message that is another's by now it would take its holder's
 * work away. So each time it is said anew, it is ours to say or it is not said.
 */
async function putBack({ delivery, lease }: Said, delayMs: number): Promise<void> {
  lease.check();
  if (await delivery.current()) await delivery.nak(delayMs);
}

async function confirm({ deps, delivery }: Said, say: () => Promise<void>): Promise<boolean> {
  try {
    await retry(deps, "ack", say, {
      mayPass: (error) => isPawlError(error, "bus_unavailable"),
      lasts: deps.settings.ackWait,
    });
    return true;
  } catch (error) {
    deps.log("warn", "ack.unconfirmed", { seq: delivery.seq, reason: messageOf(error) });
    return false;
  }
}
