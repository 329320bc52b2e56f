import type { Cost } from "../journal/cost.ts";
import type { CallKind, Known } from "../journal/entries.ts";
import type { Millis, Running, Task } from "../task/document.ts";
import type { Redact } from "../values/redact.ts";
import type { Turn, TurnRequest } from "./model.ts";

export type SpanValue = string | number | boolean | readonly string[];

/** Something that has begun and ended, as a tracing backend shows it. */
export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId?: string;
  readonly name: string;
  readonly kind: "internal" | "client" | "producer" | "consumer";
  readonly start: Millis;
  readonly end: Millis;
  readonly attributes: Readonly<Record<string, SpanValue | undefined>>;
  /** It failed: a word that doesn't change, and what was said, where that may be told. */
  readonly error?: { readonly type: string; readonly message?: string };
  /** Spans that it follows and is no part of. */
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
}

/** A call of a handler's, and whose it is. */
export interface TracedCall {
  readonly task: Running;
  readonly kind: CallKind;
  readonly key: string;
  /** A part of a conversation with a model. */
  readonly inner: boolean;
  /** What the journal had of it. */
  readonly known?: Known | undefined;
  readonly redact?: Redact | undefined;
}

/** A call that is under way. */
export interface CallTrace {
  /** To hand on to whoever the call calls. */
  readonly traceparent: string;
  /** Of a model's turn. `again`: an answer to an earlier request for it was lost, and perhaps paid for. */
  asked(request: TurnRequest, again: boolean): void;
  answered(turn: Turn, cost: Cost): void;
  failed(error: unknown): void;
  end(): void;
}

/** Which trace and span a line of the log belongs to. */
export interface LogTrace {
  readonly trace_id: string;
  readonly span_id: string;
}

/**
 * Tells a tracing backend of tasks. What a task goes through is read from the writes of its document: who made a write
 * that ends something tells of that, so each is told once, whoever had begun it. None of it throws, and none waits.
 */
export interface Trace {
  /** A document was certainly written; it is new where there was none before. */
  moved(before: Task | undefined, now: Task): void;
  /** A task was claimed, and its handler may start; its message came at `since`. */
  claimed(task: Running, since: Millis): void;
  call(call: TracedCall): CallTrace;
  /** To hand on to whoever a handler calls outside of its journaled calls. */
  traceparent(task: Task): string;
  ofTask(id: string): LogTrace | undefined;
  /** Sends what waits, for so long at the most; what is left waits on. A receiver that is away or slow is waited for once, not by all. */
  flush(ms: number): Promise<void>;
  /** Sends what waits, and tries again, for so long at the most. What is left is lost, and counted. */
  close(ms: number): Promise<void>;
}

/** "again": it may be taken later, after so many milliseconds at the soonest where the receiver says so. */
export type Sent =
  | { readonly kind: "taken"; readonly rejected: number }
  | { readonly kind: "again"; readonly why: string; readonly after?: number }
  | { readonly kind: "refused"; readonly why: string };

/** Sends spans to where they are kept. Never throws. */
export type SendSpans = (spans: readonly Span[]) => Promise<Sent>;
