import { isPawlError, messageOf, PawlError } from "../task/errors.ts";

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

export function apiCode(error: unknown): number | undefined {
  const code =
    error instanceof Error && error.name.endsWith("Error") ? (error as { code?: unknown }).code : undefined;
  return typeof code === "number" ? code : undefined;
}

/** Everything that NATS can throw, as ours: certainly not done, or not known. */
export function busError(error: unknown, what: string): PawlError {
  if (isPawlError(error)) return error;
  const name = error instanceof Error ? error.name : "";
  if (isRefusal(error)) {
    return new PawlError("bus_refused", `${what}: NATS refused it: ${messageOf(error)}`, { cause: error });
  }
  return new PawlError("bus_unavailable", `${what}: ${name || "error"}: ${messageOf(error)}`, {
    cause: error,
  });
}

/** Whether the server, or the client before it, certainly did not do it and never will. */
export function isRefusal(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = apiCode(error) ?? 0;
  const passing = ((error as { status?: number }).status ?? 0) >= 500 && !SWITCHED_OFF.has(code);
  if (REFUSED.has(error.name) || (code >= 10000 && !passing)) return true;
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
      "bus_refused",
      `${what}: ${messageOf(error)}. \`pawl run <agent>\` creates its streams and consumers`,
      { cause: error },
    );
  }
  return busError(error, what);
}
