import { isPawlError, messageOf, PawlError } from "../../errors/errors.ts";

export const NO_MESSAGE = 10037;
/** No such consumer, no such stream. */
export const GONE = new Set([10014, 10059]);

/** Names, not classes: they survive minifying, and two copies of a library. */
const REFUSED = new Set([
  "PermissionViolationError",
  "AuthorizationError",
  "InvalidSubjectError",
  "InvalidArgumentError",
]);

/** JetStream is off for the server or the account. Other errors of the 500s pass: a cluster without a leader, say. */
const SWITCHED_OFF = new Set([10039, 10076]);

/** The server can't set so much storage aside. */
export const NO_ROOM = 10047;

/** Insufficient resources, memory or storage. */
const FULL = new Set([10023, 10028, NO_ROOM]);

/** The server's own words, and what they mean where they don't say it. */
export function wordsOf(error: unknown): string {
  if (/maximum bytes exceeded/.test(messageOf(error)))
    return `${messageOf(error)}: the stream is full, up to its max_bytes`;
  if (!FULL.has(apiCode(error) ?? 0) && !/no space left/i.test(messageOf(error))) return messageOf(error);
  return `${messageOf(error)}: the NATS server's storage is full, its disk or what max_file_store allows`;
}

export const OFF = "JetStream is off on this server. Start nats-server with -js";

/** Nobody answers for JetStream: what was asked for was certainly not done. */
export function isOff(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.name === "JetStreamNotEnabled" || SWITCHED_OFF.has(apiCode(error) ?? 0);
}

/** Nobody listens to what JetStream listens to, where it is on. The name is the client's. */
export class NotThere extends Error {
  override readonly name = "JetStreamNotEnabled";
  constructor(subject: string) {
    super(`nobody listens to ${subject}`);
  }
}

/** The same of a server that has JetStream, which passes: a cluster answers so for seconds while it chooses a leader. */
export class JetStreamAway extends Error {
  override readonly name = "JetStreamAway";
  constructor(cause: unknown) {
    super(
      `JetStream does not answer (${messageOf(cause)}), though the server has it: its cluster is choosing a leader, or its disk is full (its log says so), or this user's account may not use JetStream`,
      { cause },
    );
  }
}

export function apiCode(error: unknown): number | undefined {
  const code =
    error instanceof Error && error.name.endsWith("Error") ? (error as { code?: unknown }).code : undefined;
  return typeof code === "number" ? code : undefined;
}

/** Everything that NATS can throw, as ours: certainly not done, or not known. */
export function busError(error: unknown, what: string): PawlError {
  if (isPawlError(error)) return error;
  const name = error instanceof Error ? error.name : "";
  if (isOff(error)) return new PawlError("bus_refused", `${what}: ${OFF}`, { cause: error });
  if (isRefusal(error)) {
    return new PawlError("bus_refused", `${what}: NATS refused it: ${wordsOf(error)}`, { cause: error });
  }
  const kind = error instanceof JetStreamAway ? "" : `${name || "error"}: `;
  return new PawlError("bus_unavailable", `${what}: ${kind}${wordsOf(error)}`, { cause: error });
}

/** Whether the server, or the client before it, certainly did not do it and never will. */
export function isRefusal(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = apiCode(error) ?? 0;
  const passing = ((error as { status?: number }).status ?? 0) >= 500;
  if (isOff(error) || REFUSED.has(error.name) || (code >= 10000 && !passing)) return true;
  return error.cause instanceof Error && error.cause.name === "PermissionViolationError";
}

/** An error about a stream or consumer that may not be there. */
export function missing(error: unknown, what: string): PawlError {
  if (error instanceof Error && error.name === "ClosedConnectionError") {
    return new PawlError("bus_refused", `${what}: the connection to NATS is closed for good`, {
      cause: error,
    });
  }
  if (GONE.has(apiCode(error) ?? 0)) {
    return new PawlError(
      "queue_gone",
      `${what}: ${messageOf(error)}. \`pawl run <agent>\` creates its streams and consumers`,
      { cause: error },
    );
  }
  return busError(error, what);
}
