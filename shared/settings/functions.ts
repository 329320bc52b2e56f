import { parseDuration } from "../values/duration.ts";
import { address, identityIn, text, tooShort, type Variable } from "./variable.ts";

function webhookSecretProblem(secret: string): string | undefined {
  const isBase64 = /^[A-Za-z0-9+/]{22,}={0,2}$/.test(secret.slice("whsec_".length));
  if (secret.length >= 16 && secret.startsWith("whsec_") && !isBase64)
    return "PAWL_WEBHOOK_SECRET begins with whsec_, so the rest should be base64 of 16 bytes or more";
  return tooShort("PAWL_WEBHOOK_SECRET", secret);
}

/** For functions, and for whoever wakes them. */
export const functionVariables = {
  PAWL_RUN_SECRET: {
    form: "16 characters or more",
    meaning: "What a caller of `POST /run` has to know.",
    readBy: ["library"],
    secret: true,
    read: text,
    wrong: (secret) => tooShort("PAWL_RUN_SECRET", secret),
  },
  PAWL_WAKE_URL: {
    form: "the address of an agent's POST /run, such as https://pawl-{agent}.example.com/run",
    meaning:
      "Where a submit wakes an agent's function. Needs `PAWL_RUN_SECRET`. `reconcile` wakes itself there when its time is over, and `dispatch` wakes it when it was cut off: {agent} is then `reconcile`.",
    readBy: ["library", "deploy"],
    unset: "functions are woken by cron only",
    read: address,
    wrong: (url) => identityIn("PAWL_WAKE_URL", url, "A function knows its caller by PAWL_RUN_SECRET"),
  },
  PAWL_TIME_LIMIT: {
    form: 'a duration such as "15m"',
    meaning:
      "Longest run of one invocation. The clock starts with it; the last `PAWL_STOP_GRACE` and `PAWL_REQUEST_TIMEOUT` of it are for handing off.",
    readBy: ["function"],
    unset: "15m on Workers, 60m on Cloud Run",
    read: (value) => parseDuration(value) || undefined,
  },
  PAWL_WEBHOOK_URL: {
    form: "an address that begins with https://",
    meaning:
      "Who is told of tasks that failed, are in doubt or wait ([api.md](api.md#webhooks)). For every function and `pawl run`; needs `PAWL_WEBHOOK_SECRET`.",
    readBy: ["library", "deploy"],
    standIn: "https://webhook.invalid",
    read: address,
    wrong: (url) => identityIn("PAWL_WEBHOOK_URL", url, "A receiver knows its caller by PAWL_WEBHOOK_SECRET"),
  },
  PAWL_WEBHOOK_SECRET: {
    form: "16 characters or more, or `whsec_` and base64",
    meaning: "What calls of `PAWL_WEBHOOK_URL` are signed with.",
    readBy: ["library"],
    secret: true,
    read: text,
    wrong: webhookSecretProblem,
  },
  PAWL_DEPLOYED: {
    form: "what a deploy writes",
    meaning:
      "What a function was built from. A deploy writes it beside the function's settings, and the next one compares.",
    readBy: ["deploy"],
    read: text,
  },
  PAWL_CORS_ORIGIN: {
    form: "one origin, such as https://app.example.com",
    meaning: "The one origin that browsers may call the API from.",
    readBy: ["function"],
    unset: "none",
    // As browsers write it, or it would never be theirs: small letters, and no port that goes without saying.
    read: (origin) => (URL.canParse(origin) && new URL(origin).origin === origin ? origin : undefined),
  },
  PAWL_RATE_LIMIT: {
    form: "a number of requests a minute",
    meaning:
      "Requests a minute that one token may make of one instance of the API. Each 16 KiB of a body and each 50 documents that a list looks at cost as much as one more.",
    readBy: ["function"],
    default: "600",
    read: (value) => (/^[1-9]\d{0,6}$/.test(value) ? Number(value) : undefined),
  },
} as const satisfies Record<string, Variable>;
