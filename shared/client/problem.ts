import type { ErrorCode } from "../errors/errors.ts";

/** What is said of a request by the client itself; docs/client.md explains each. */
export type ClientCode = "client_invalid" | "no_answer" | "foreign_answer" | "timed_out";

/** Longer than any detail of the API. */
const DETAIL_SHOWN = 2_000;

/** A request that was refused, or not answered. `code` is one of docs/errors.md, or of the client's own. */
export class Problem extends Error {
  // A literal, because minifiers rename classes.
  override readonly name: string = "Problem";
  /** What went wrong: `quota_exceeded`, `task_unknown`, `no_answer`, … */
  readonly code: ErrorCode | ClientCode;
  /** What is wrong with which value, and what to do, as the API says it. */
  readonly detail: string;
  /** The answer's HTTP status; none where there was no answer. */
  readonly status?: number;
  /** Seconds until it may be asked again, where the answer says so. */
  readonly retryAfter?: number;

  constructor(
    code: ErrorCode | ClientCode,
    detail: string,
    more: { readonly status?: number; readonly retryAfter?: number } = {},
  ) {
    super(`${code}: ${detail}`);
    this.code = code;
    this.detail = detail;
    if (more.status !== undefined) this.status = more.status;
    if (more.retryAfter !== undefined) this.retryAfter = more.retryAfter;
  }
}

/** A task that is over and has no result: it failed for good, or was cancelled. */
export class NoResult extends Error {
  override readonly name: string = "NoResult";
  /** The task's id. */
  readonly id: string;
  /** How it ended. */
  readonly state: "failed" | "cancelled";
  /** Why: one of docs/errors.md, such as `attempts_exhausted`; `cancelled` where it was cancelled. */
  readonly code: ErrorCode | "cancelled";

  constructor(id: string, state: "failed" | "cancelled", code: ErrorCode | "cancelled", message: string) {
    super(message);
    this.id = id;
    this.state = state;
    this.code = code;
  }
}

/** The problem that an answer tells of, by its text. What is none of Pawl's is somebody's in between: a proxy's page, say. */
export function problemOf(response: Response, text: string, now: number): Problem {
  const { status, headers } = response;
  const after = secondsOf(headers.get("retry-after"), now);
  const more = { status, ...(after !== undefined && { retryAfter: after }) };
  const said = jsonOf(text);
  if (typeof said?.code === "string" && /^[a-z_]{1,64}$/.test(said.code) && typeof said.detail === "string")
    return new Problem(said.code as ErrorCode, plain(said.detail, DETAIL_SHOWN), more);
  return foreign(status, headers.get("content-type"), text, more.retryAfter);
}

/** An answer that Pawl's API does not give. */
export function foreign(status: number, type: string | null, text: string, retryAfter?: number): Problem {
  const words = plain(text.replaceAll(/<(style|script)\b[\s\S]*?<\/\1>|<[^>]*>/gi, " "), 200);
  const what = `${status}, ${plain(type ?? "of no type", 60)}`;
  return new Problem(
    "foreign_answer",
    `That is no answer of Pawl's API, but of something in between, or at another address (${what})${words && `: ${words}`}`,
    { status, ...(retryAfter !== undefined && { retryAfter }) },
  );
}

function jsonOf(text: string): Record<string, unknown> | undefined {
  try {
    return Object(JSON.parse(text)) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

/** In one line, without characters that a terminal obeys. */
function plain(text: string, most: number): string {
  const line = text.replaceAll(/[\s\p{C}]+/gu, " ").trim();
  return line.length > most ? `${line.slice(0, most)}…` : line;
}

/** Retry-After: seconds, or a date. */
function secondsOf(text: string | null, now: number): number | undefined {
  if (text === null) return undefined;
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : Math.ceil((Date.parse(text) - now) / 1_000);
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}
