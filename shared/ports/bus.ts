import type { Millis } from "../task/document.ts";
import type { Queue } from "../task/names.ts";
import type { QueueFieldName } from "./queue-fields.ts";
import type { Fill } from "./store.ts";

export interface OutgoingMessage {
  readonly taskId: string;
  readonly data: Uint8Array;
  readonly msgId: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** What is in a queue for a task now. */
export interface StoredMessage {
  readonly seq: number;
  readonly headers: ReadonlyMap<string, string>;
}

/**
 * "duplicate": the Msg-Id is in the stream's window. "occupied": a message of this task is in the queue.
 * Neither says whether that message is this one: the publisher looks.
 */
export type PublishResult =
  | { readonly kind: "stored"; readonly seq: number }
  | { readonly kind: "duplicate"; readonly seq: number }
  | { readonly kind: "occupied" };

/** One delivery of one message. Each word to the broker is sent as a request and confirmed. */
export interface Delivery {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers: ReadonlyMap<string, string>;
  /** The stream's name and sequence. */
  readonly queue: string;
  readonly seq: number;
  /** A hint, never a budget: a killed server repeats its counts. */
  readonly redelivered: boolean;
  /** How often it was delivered, with the same reservation. */
  readonly deliveries: number;
  /** Postpones the redelivery. Confirmed also for a stale holder, so it proves nothing by itself. */
  working(): Promise<void>;
  /** Whether this is still the consumer's newest delivery. */
  current(): Promise<boolean>;
  ack(): Promise<void>;
  nak(delayMs: number): Promise<void>;
}

export interface QueueState {
  /** Waiting to be delivered. */
  readonly pending: number;
  /** Delivered and not acked. */
  readonly inFlight: number;
}

/** A field of a queue's definition that is not as it should be. `queueFields` says what that can cost. */
export interface QueueDifference {
  readonly field: QueueFieldName;
  readonly is: string;
  readonly should: string;
  /** It can lose work or do it twice. */
  readonly isUnsafe: boolean;
}

/** Everything that a stream and its consumer say of themselves. */
export interface QueueInfo extends QueueState {
  /** The server's clock. */
  readonly now: Millis;
  /** Deliveries that are under way for the second time or more. */
  readonly redelivered: number;
  /** When the oldest message was stored; none in an empty queue. */
  readonly oldestAt?: Millis;
  readonly messages: number;
  readonly firstSeq: number;
  /** Every message that was ever accepted has a sequence up to this one. */
  readonly lastSeq: number;
  readonly createdAt: Millis;
  /** None where it is gone: then everything is pending. */
  readonly consumer?: {
    readonly createdAt: Millis;
    /** The newest sequence that was delivered, and the one up to which all are acked. */
    readonly delivered: number;
    readonly ackFloor: number;
    /** It delivers nothing until then. */
    readonly pausedUntil?: Millis;
  };
  readonly differences: readonly QueueDifference[];
}

/** A message as it lies in its stream. */
export interface KeptMessage extends StoredMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly at: Millis;
}

/** The server's word that it gave a message up. */
export interface Advisory {
  /** The sequence of the advisory itself. */
  readonly at: number;
  /** The stream's name, and the message's sequence in it. */
  readonly queue: string;
  readonly seq: number;
  readonly deliveries: number;
}

/** A claim by its token; and whose task it is, so that an agent's identity can answer for its own claims only. */
export interface HeldClaim {
  readonly agent: string;
  readonly token: string;
}

/** A pull that waits at the server. `cancel` withdraws it; a message that was already under way is redelivered. */
export interface Pull {
  readonly delivery: Promise<Delivery | undefined>;
  cancel(): Promise<void>;
}

/**
 * Where messages are. Methods throw `bus_unavailable` when the outcome is unknown, `bus_refused`, `queue_gone` or `queue_full`
 * when the server certainly did not do it.
 */
export interface Bus {
  readonly name: string;
  /**
   * Creates the queue's stream and consumer if they are missing and, unless told to create only, corrects them to match.
   * What is unsafe is corrected in any case. Returns what it changed.
   */
  ensure(queue: Queue, how?: "correct" | "create"): Promise<readonly string[]>;
  publish(queue: Queue, message: OutgoingMessage): Promise<PublishResult>;
  /** The task's message in the queue, asked of the stream's leader. */
  lookup(queue: Queue, taskId: string): Promise<StoredMessage | undefined>;
  /** `drifted` is told, whenever the delivery is asked whether it is current, what is unsafe about the queue's consumer. */
  pull(queue: Queue, waitMs: number, drifted?: (drift: string) => void): Pull;
  /** All queues of the namespace, also those of agents and generations that are no more. */
  queues(): Promise<Queue[]>;
  state(queue: Queue): Promise<QueueState>;
  inspect(queue: Queue): Promise<QueueInfo>;
  /** How full a queue is; undefined where it has no end, or is not there. Only where one may have an end. */
  usage?(queue: Queue): Promise<Fill | undefined>;
  /** Up to `limit` messages that are there, from this sequence on, in order. Fewer where they are large; none at the end. */
  survivors(queue: Queue, from: number, limit: number): Promise<KeptMessage[]>;
  /** Deletes one message. Only for what is settled. */
  remove(queue: Queue, seq: number): Promise<void>;
  /** Captured words of the server, oldest first, also those that were said with nobody listening. */
  advisories(limit: number): Promise<Advisory[]>;
  /** Since when these words are captured; undefined where nothing captures them. */
  advisoriesSince(): Promise<Millis | undefined>;
  /** The advisory was dealt with. */
  forgetAdvisory(advisory: Advisory): Promise<void>;
  /** Tells whoever listens that something about a task has changed. Nobody may rely on hearing it. */
  announce(task: { readonly id: string; readonly agent: string }): void;
  /** Calls back for one task, or for all of the namespace, until the returned function is called. */
  listen(changed: (id: string) => void, id?: string): () => void;
  /** Names the life of the server we talk to: another after it was restarted. */
  serverId(): string;
  /** Answers whoever asks whether this claim is held, until the returned function is called. */
  answerFor(claim: HeldClaim, isHeld: () => boolean): () => void;
  /** Whether the holder of a claim answers that it still holds it. No answer is no. */
  isHeld(claim: HeldClaim): Promise<boolean>;
  close(): Promise<void>;
}
