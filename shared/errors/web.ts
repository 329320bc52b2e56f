import type { ErrorKind } from "./kind.ts";

/** What only a request can meet. */
export const webErrors = {
  idempotency_key_reused: {
    disposition: "fail",
    status: 422,
    exitCode: 1,
    meaning: "An Idempotency-Key was used before, for another request of the same owner.",
    remedy: "Use a key of its own for each request, and the same request for the same key.",
  },
  method_not_allowed: {
    disposition: "fail",
    status: 405,
    exitCode: 1,
    meaning: "The address exists, but does not take this method.",
    remedy: "Use the one that the answer's Allow header names.",
  },
  not_found: {
    disposition: "fail",
    status: 404,
    exitCode: 1,
    meaning: "There is nothing at the address of a request.",
    remedy: "Check it against GET /v1/openapi.json.",
  },
  request_cut_off: {
    disposition: "fail",
    status: 400,
    exitCode: 1,
    meaning: "A caller hung up before the body of its request had come whole.",
    remedy: "Send it again.",
  },
  token_expired: {
    disposition: "fail",
    status: 401,
    exitCode: 1,
    meaning: "The time of a token is over. Only who holds it is told so.",
    remedy: "`pawl token create` makes another.",
  },
  too_many_requests: {
    disposition: "retry",
    status: 429,
    exitCode: 1,
    meaning:
      "A token asked for more in a minute than PAWL_RATE_LIMIT allows: large bodies and long lists cost more than one request.",
    remedy: "Wait as long as the Retry-After header says.",
  },
  unauthorised: {
    disposition: "fail",
    status: 401,
    exitCode: 1,
    meaning: "A request came without a token, or with one that is not valid.",
    remedy: "Send Authorization: Bearer <token>. `pawl token create` makes one.",
  },
  unhealthy: {
    disposition: "retry",
    status: 503,
    exitCode: 1,
    meaning: "NATS or the store did not answer the API, or took no write.",
    remedy: "See the function's log for which of them, and why; or ask GET /health with a token.",
  },
} as const satisfies Record<string, ErrorKind>;
