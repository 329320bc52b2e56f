import { isPawlError, messageOf, PawlError } from "../task/errors.ts";

/** Names, not classes: they survive minifying, and two copies of a library. */
const REFUSED = new Set([
  "PermissionViolationError",
  "AuthorizationError",
  "InvalidSubjectError",
  "InvalidArgumentError",
]);

export function apiCode(error: unknown): number | undefined {
  const code =
    error instanceof Error && error.name.endsWith("Error") ? (error as { code?: unknown }).code : undefined;
  return typeof code === "number" ? code : undefined;
}

/** Everything that NATS can throw, as ours: certainly not done, or not known. */
export function busError(error: unknown, what: string): PawlError {
  if (isPawlError(error)) return error;
  const name = error instanceof Error ? error.name : "";
  if (REFUSED.has(name) || (error instanceof Error && isPermission(error.cause))) {
    return new PawlError("bus_refused", `${what}: NATS refused it: ${messageOf(error)}`, { cause: error });
  }
  return new PawlError("bus_unavailable", `${what}: ${name || "error"}: ${messageOf(error)}`, {
    cause: error,
  });
}

function isPermission(cause: unknown): boolean {
  return cause instanceof Error && cause.name === "PermissionViolationError";
}
