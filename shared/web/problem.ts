import { type ErrorCode, errorKinds, isPawlError, messageOf, NotNow } from "../errors/errors.ts";
import type { Log } from "../ports/log.ts";
import { GUARDED } from "./guarded.ts";

/** An error as RFC 9457 problem details. One that is none of ours is logged, not shown; "kind" shows no more of ours either. */
export function problemOf(error: unknown, log: Log, shown: "whole" | "kind" = "whole"): Response {
  if (!isPawlError(error)) {
    const stack = error instanceof Error ? error.stack : String(error);
    log("error", "function.unexpected", { stack });
    return problem("unexpected", "An unexpected error. See the function's log");
  }
  const { status, meaning, remedy } = errorKinds[error.code];
  const after = error instanceof NotNow ? error.after : status === 503 ? 60 : undefined;
  const headers: Record<string, string> = after === undefined ? {} : { "retry-after": String(after) };
  if (shown === "whole") return problem(error.code, `${messageOf(error)}. ${remedy}`, headers);
  // What another request would do is its sender's affair.
  log(status < 500 ? "info" : "error", "request.failed", { code: error.code, reason: messageOf(error) });
  return problem(error.code, `${meaning} See the function's log`, headers);
}

/** `status`: where the answer is to say more than the table's does. */
export function problem(
  code: ErrorCode,
  detail: string,
  headers: Record<string, string> = {},
  status: number = errorKinds[code].status,
): Response {
  return Response.json(
    { type: "about:blank", status, code, detail },
    // Some are answered where no app sees them: by a platform's own code.
    { status, headers: { ...GUARDED, "content-type": "application/problem+json", ...headers } },
  );
}
