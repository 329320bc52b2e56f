import { parseDuration } from "../values/duration.ts";
import type { Disposition } from "./kind.ts";
import { type ErrorCode, errorKinds } from "./kinds.ts";

export { type ErrorCode, errorKinds } from "./kinds.ts";

export class PawlError extends Error {
  // A literal, because minifiers rename classes.
  override readonly name: string = "PawlError";
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }

  get disposition(): Disposition {
    return errorKinds[this.code].disposition;
  }
}

/** Thrown by a handler when trying again would not help: the task is a dead letter at once. In an effect it says that nothing happened. */
export class Fatal extends PawlError {
  override readonly name = "Fatal";
  constructor(message: string, options?: ErrorOptions) {
    super("fatal", message, options);
  }
}

/**
 * Thrown by a handler that knows when trying again makes sense: "30s" from now, or a number of milliseconds. It spends an
 * attempt, as every failure does, also for a 429: else nothing would end a task whose receiver refuses it for ever, and nobody
 * would be told. What succeeded is in the journal, so another attempt costs little: raise `limits.attempts`, or let a step
 * return that it was refused and `sleep` before the next one, which spends none. Models' own 429s are waited for inside their
 * turn, up to a minute each, and spend none. In an effect it says that nothing happened. In a step, or a tool that only reads,
 * nothing is stored, and a model is not told: the handler fails with it, and the next attempt runs that step again, on the
 * turns that are kept.
 */
export class Retry extends PawlError {
  override readonly name = "Retry";
  /** In milliseconds. */
  readonly after: number;
  constructor(message: string, after: number | string, options?: ErrorOptions) {
    super("handler_failed", message, options);
    this.after = typeof after === "number" ? after : (parseDuration(after) ?? Number.NaN);
  }
}

/** What was refused before anything was stored, and may be repeated after some time. */
export class NotNow extends PawlError {
  override readonly name = "NotNow";
  /** Seconds until it may be taken. */
  readonly after: number;
  constructor(
    code: "quota_exceeded" | "store_full" | "queue_full" | "too_many_requests",
    message: string,
    after: number,
  ) {
    super(code, message);
    this.after = after;
  }
}

/** Thrown by a tool: nothing happened, and the model is told why. */
export class ToolError extends PawlError {
  override readonly name = "ToolError";
  constructor(message: string, options?: ErrorOptions) {
    super("handler_failed", message, options);
  }
}

/** What was read is not as its last writer left it. It comes along, for whoever has to look. */
export class Altered extends PawlError {
  override readonly name = "Altered";
  readonly found: { readonly revision: string };
  constructor(
    code: "document_altered" | "seal_key_unknown" | "journal_altered",
    message: string,
    found: { readonly revision: string },
  ) {
    super(code, message);
    this.found = found;
  }
}

const UNSOUND: ReadonlySet<ErrorCode> = new Set([
  "document_altered",
  "document_unreadable",
  "seal_key_unknown",
]);

/** A document that can't be acted upon: it can't be read, or is not as its last writer left it. */
export function isUnsound(error: unknown): error is PawlError {
  return error instanceof PawlError && UNSOUND.has(error.code);
}

/** What the store has under a key, and nobody can read as a document of ours. */
export class Unreadable extends PawlError {
  override readonly name = "Unreadable";
  /** The id that it lies under. */
  readonly key: string;
  /** What is wrong with it. */
  readonly why: string;
  /** As it is stored; empty where there is no text at all. */
  readonly text: string;
  /** What a write that mends it must have seen. */
  readonly revision?: string;
  constructor(what: string, found: Pick<Unreadable, "key" | "why" | "text" | "revision">) {
    super("document_unreadable", `${what} can't be read: ${found.why}`);
    this.key = found.key;
    this.why = found.why;
    this.text = found.text;
    if (found.revision !== undefined) this.revision = found.revision;
  }
}

export function isPawlError(error: unknown, code?: ErrorCode): error is PawlError {
  return error instanceof PawlError && (code === undefined || error.code === code);
}

export function messageOf(error: unknown): string {
  try {
    // What a handler throws may have anything as its message.
    return String(error instanceof Error ? error.message || error.name : error);
  } catch {
    return "something was thrown that can't be shown as text";
  }
}
