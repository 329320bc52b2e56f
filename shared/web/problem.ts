import { type ErrorCode, errorKinds, isPawlError, messageOf } from "../errors/errors.ts";
import type { Log } from "../ports/log.ts";

/** Where an error is the caller's, or has a status of its own. Anything else is 503 if it may pass, and 500 if not. */
const STATUS: Partial<Record<ErrorCode, number>> = {
  agent_name_invalid: 422,
  agent_unknown: 422,
  id_conflict: 409,
  illegal_transition: 409,
  input_invalid: 422,
  input_too_large: 413,
  msg_id_taken: 409,
  question_moved: 409,
  redrive_refused: 409,
  report_unknown: 404,
  scope_missing: 403,
  signal_refused: 409,
  task_id_invalid: 422,
  task_unknown: 404,
};

/** An error as RFC 9457 problem details. One that is none of ours is logged, not shown; "kind" shows no more of ours either. */
export function problemOf(error: unknown, log: Log, shown: "whole" | "kind" = "whole"): Response {
  if (!isPawlError(error)) {
    const stack = error instanceof Error ? error.stack : String(error);
    log("error", "function.unexpected", { stack });
    return problem(500, "unexpected", "An unexpected error. See the function's log");
  }
  const { disposition, meaning, remedy } = errorKinds[error.code];
  const status = STATUS[error.code] ?? (disposition === "retry" ? 503 : 500);
  const headers: Record<string, string> = status === 503 ? { "retry-after": "60" } : {};
  if (shown === "whole") return problem(status, error.code, `${messageOf(error)}. ${remedy}`, headers);
  log("error", "request.failed", { code: error.code, reason: messageOf(error) });
  return problem(status, error.code, `${meaning} See the function's log`, headers);
}

export function problem(
  status: number,
  code: ErrorCode,
  detail: string,
  headers: Record<string, string> = {},
): Response {
  return Response.json(
    { type: "about:blank", status, code, detail },
    { status, headers: { "content-type": "application/problem+json", ...headers } },
  );
}
