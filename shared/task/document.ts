import type { ErrorCode } from "../errors/errors.ts";
import type { Cost } from "../journal/cost.ts";
import type { Logs } from "../journal/logs.ts";
import type { Json, JsonObject } from "../values/json.ts";

/** Milliseconds since the epoch. */
export type Millis = number;

/** What became of one stream sequence that carried a task. Nothing is acked that is not settled first. */
export type SettledAs =
  | "completed"
  | "failed"
  | "cancelled"
  | "rescheduled"
  | "waiting"
  | "in_doubt"
  | "duplicate"
  | "conflict"
  /** The message was gone from its stream, and the task was dispatched again. */
  | "lost";

/** What stopped a second publish: the stream's window, the subject still occupied, the document, an API's key. */
export type DuplicateLayer = "window" | "subject" | "document" | "key";

export interface Settlement {
  readonly queue: string;
  readonly seq: number;
  /** The dispatch that this sequence carried; 0 when it was published directly. */
  readonly dispatch: number;
  readonly outcome: SettledAs;
  readonly at: Millis;
}

export interface HistoryEntry {
  readonly at: Millis;
  readonly event: string;
  readonly state: State;
  readonly fence: number;
  /** The write's unique value: how a writer whose reply was lost recognises its own write. */
  readonly stamp: string;
  readonly by: string;
  readonly note?: string;
  /** Why a write that tells of a failure was made. */
  readonly error?: Reason;
}

/** A failure in short, as a history keeps it. */
export interface Reason {
  readonly code: ErrorCode;
  readonly message: string;
  /** The first line of its stack. */
  readonly where?: string;
}

export interface TaskFailure {
  readonly code: ErrorCode;
  readonly message: string;
  /** Where a handler threw: the first lines of its stack. */
  readonly stack?: string;
  /** Where it went wrong: the envelope, the input, the handler, the result, the delivery. */
  readonly phase: "envelope" | "input" | "handler" | "result" | "delivery";
  /** Which answers the handler failed on (a rejection, say): where in the journal their calls begin. A redrive asks again. */
  readonly on?: readonly number[];
}

/** What a redrive forgets of a task's journal, so that its handler does it again. Places are entries, counted from 0. */
export interface Redriven {
  /** The dispatch that it made: by this the journal knows whether it was heeded. */
  readonly dispatch: number;
  readonly at: Millis;
  /** Calls that begin here: the answers that the task failed on. */
  readonly again?: readonly number[];
  /** Instead: all calls that begin here or later, but for effects. */
  readonly from?: number;
}

/** Bytes of a message that could not be read as a task, kept for a person to look at. */
export interface RawMessage {
  readonly base64: string;
  readonly bytes: number;
  readonly truncated: boolean;
  readonly subject: string;
}

export interface Signal {
  readonly name: string;
  readonly value: Json;
  readonly at: Millis;
}

/** What a submitter says of a task beside its input, and in which trace. Nothing of it changes what the task does. */
export interface Meta {
  /** Whose token submitted it through the API: only they, and operators, see it there. */
  readonly owner?: string;
  /** Of the whole request: the same Idempotency-Key with another one is a mistake. */
  readonly requestHash?: string;
  /** The Msg-Id of its first dispatch, where its submitter chose one: it says which operation this is. */
  readonly msgId?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly traceparent?: string;
}

export interface Common {
  readonly v: 1;
  readonly id: string;
  readonly agent: string;
  readonly lane: number;
  readonly orderingKey?: string;
  /** The task that submitted this one. */
  readonly parent?: string;
  readonly meta?: Meta;
  readonly input: JsonObject;
  readonly inputHash: string;
  /** Grows by one with every claim and is never reset: the order of all holders. */
  readonly fence: number;
  /** Differs in every write. Firestore lets identical concurrent writes all succeed; these never are. */
  readonly stamp: string;
  /** The last holder's code has ended, by its own write: the next may start at once. */
  readonly released: boolean;
  /** How long, in milliseconds, the code of a holder that did not let go may still act: its successor waits that out. */
  readonly lease: number;
  /**
   * When such a holder, by its own write, had told its code to stop: the successor's wait began then, not with its claim.
   * It is the word of the execution of this number, and says nothing of a later one.
   */
  readonly stopped?: { readonly at: Millis; readonly by: string; readonly execution: number };
  /** How long an invocation must still have, in milliseconds, to bring the task further: one that had less handed it off. */
  readonly needs?: number;
  readonly dispatches: number;
  /** Failures only: crashes, hand-offs and publish failures don't count. */
  readonly attempts: number;
  /** Starts: claims that were about to run the handler. One that died before the handler's first line is among them. */
  readonly executions: number;
  /** Starts in a row that ended without a word: the crash loop's counter. */
  readonly silentStarts: number;
  /** Grows when the task is redriven from scratch: a journal of an older one is as good as none. */
  readonly epoch: number;
  /** Entries in its journal, and how many of them are no progress, by the last word of a holder, or when a takeover found it grown. A holder that died may have written more. */
  readonly journaled: number;
  readonly again?: number;
  /** The last holder let go, and knew that there is no journal: nobody has to look for one. */
  readonly unjournaled?: boolean;
  /** What its newest redrive wants forgotten. The next holder writes it into the journal; it stays until the next redrive. */
  readonly redriven?: Redriven;
  /** What its model turns cost, and what the journal saved, by the last word of a holder. */
  readonly spent: Cost;
  readonly saved: Cost;
  readonly settled: readonly Settlement[];
  /** Full pages of older settlements, stored beside the document; and a hash of each page and those before it. */
  readonly settledPages: number;
  readonly settledHash?: string;
  readonly publishDuplicates: Readonly<Record<DuplicateLayer, number>>;
  readonly redeliveriesSkipped: number;
  /** What its history may have forgotten. Without those that are 0; documents of earlier versions have none. */
  readonly counts?: Partial<Counts>;
  readonly signals: readonly Signal[];
  readonly cancelRequested?: { readonly at: Millis; readonly by: string };
  readonly lastError?: TaskFailure;
  /** What its handlers logged, by the last word of a holder. */
  readonly logs?: Logs;
  readonly history: readonly HistoryEntry[];
  readonly createdAt: Millis;
  readonly updatedAt: Millis;
  /** Of the write that left it so. None where it was written before there were seals. */
  readonly seal?: Seal;
}

/** The message that carries the task now. No sequence yet: published, or about to be. */
interface HasMessage {
  readonly queue: string;
  readonly seq?: number;
}

/** News of a task that its people have not been told yet. */
export interface Untold {
  /** Of the write that was the news. */
  readonly stamp: string;
  readonly at: Millis;
  readonly tries: number;
  readonly dueAt: Millis;
}
interface News {
  readonly untold?: Untold;
}
// What each state means stands in `table.ts`, from which docs/lifecycle.md is printed.

export interface Scheduled extends Common {
  readonly state: "scheduled";
  readonly dueAt: Millis;
}
export interface Dispatched extends Common, HasMessage {
  readonly state: "dispatched";
  /** Only on a strict lane: the message is there, and waits. */
  readonly dueAt?: Millis;
}
export interface Running extends Common, HasMessage {
  readonly state: "running";
  readonly seq: number;
  readonly token: string;
  readonly runner: string;
  /** The server that its holder talked to. Another one may have forgotten that the message was delivered. */
  readonly via: string;
  /** False between a takeover and the moment when no earlier holder can still act. */
  readonly started: boolean;
  /** There certainly was no journal at its claim. */
  readonly fresh: boolean;
}
export interface Waiting extends Common, News {
  readonly state: "waiting";
  /** The names of the signals that end it: any of them. */
  readonly waitingFor: readonly string[];
  /** What a person is asked, in the agent's words. */
  readonly summary?: string;
  /** When it goes on without one. */
  readonly dueAt?: Millis;
}
export interface InDoubt extends Common, News {
  readonly state: "in_doubt";
  readonly effect: string;
  /** Which try of it. */
  readonly tries: number;
}
export interface Completed extends Common {
  readonly state: "completed";
  readonly result: Json;
  readonly expiresAt: Millis;
}
export interface Failed extends Common, News {
  readonly state: "failed";
  readonly error: TaskFailure;
  readonly raw?: RawMessage;
  readonly expiresAt: Millis;
}
export interface Cancelled extends Common {
  readonly state: "cancelled";
  readonly expiresAt: Millis;
}

export type Task = Scheduled | Dispatched | Running | Waiting | InDoubt | Completed | Failed | Cancelled;
export type State = Task["state"];

/** A field that some states have and others don't. */
type OwnField = Exclude<
  Task extends infer One ? (One extends Task ? keyof One : never) : never,
  keyof Common
>;

/** All of these: one that is forgotten here, or is none, does not compile. */
const OWN: Readonly<Record<OwnField, true>> = {
  state: true,
  queue: true,
  seq: true,
  token: true,
  runner: true,
  via: true,
  started: true,
  fresh: true,
  dueAt: true,
  waitingFor: true,
  summary: true,
  effect: true,
  tries: true,
  result: true,
  error: true,
  raw: true,
  expiresAt: true,
  untold: true,
};

/** The fields that every state has, without those of the state it is in. */
export function common(task: Task): Common {
  const fields: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(task)) if (!(field in OWN)) fields[field] = value;
  return fields as unknown as Common;
}

/** What shows that a document is as its last writer left it. */
export interface Seal {
  /** Of its content, its key and the seal before it. */
  readonly own: string;
  /** Of what this write replaced: none of the first. */
  readonly before: string;
  /** Of the write that it seals. A writer of a version without seals carries it along: what that one wrote has none. */
  readonly stamp: string;
}

/** What a task counts of itself, from its first write on. None of it ever goes down. */
export interface Counts {
  /** Of the document, by its events. */
  readonly writes: number;
  readonly retries: number;
  readonly takeovers: number;
  /** How often it became a dead letter. */
  readonly failed: number;
  readonly handOffs: number;
  /** Sleeps, waits and doubts. */
  readonly suspensions: number;
  /** Journal entries that redrives from scratch left behind. */
  readonly discarded: number;
}
