import type { Given, Reading, VariableName } from "./variables.ts";

export interface TogetherRule {
  readonly name: string;
  readonly why: string;
  readonly of: readonly VariableName[];
  readonly broken: (given: Given) => string | undefined;
}

/** Of two that belong together, one is there. */
const without = (one: VariableName, other: VariableName) => (given: Given) =>
  given[one] !== undefined && given[other] === undefined
    ? `${one} is set without ${other}. Set both, or neither`
    : undefined;

/** What variables have to agree on; the numbers' own rules are `settingRules`. */
export const togetherRules: readonly TogetherRule[] = [
  {
    name: "one-identity",
    why: "NATS takes a single identity: a credentials file, or a user and a password.",
    of: ["NATS_CREDS", "NATS_USER", "NATS_PASSWORD"],
    broken: ({ NATS_CREDS, NATS_USER, NATS_PASSWORD }) =>
      NATS_CREDS && (NATS_USER || NATS_PASSWORD)
        ? "NATS_CREDS and NATS_USER/NATS_PASSWORD are both set. Unset one: a server takes a single identity"
        : undefined,
  },
  {
    name: "user-and-password",
    why: "NATS asks a user for a password, and whose it is.",
    of: ["NATS_USER", "NATS_PASSWORD"],
    broken: (given) =>
      without("NATS_USER", "NATS_PASSWORD")(given) ?? without("NATS_PASSWORD", "NATS_USER")(given),
  },
  {
    name: "project-of-firestore",
    why: "Documents in Firestore belong to a project.",
    of: ["PAWL_STORE", "GOOGLE_CLOUD_PROJECT"],
    broken: ({ PAWL_STORE: store, GOOGLE_CLOUD_PROJECT }) =>
      store !== undefined && store !== "nats-kv" && !GOOGLE_CLOUD_PROJECT
        ? `GOOGLE_CLOUD_PROJECT is not set, and PAWL_STORE is ${store}. Set it to the project's id`
        : undefined,
  },
  {
    name: "key-of-firestore-rest",
    why: "Without Google's client library nobody looks for an identity elsewhere.",
    of: ["PAWL_STORE", "FIRESTORE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS"],
    broken: ({ PAWL_STORE, FIRESTORE_EMULATOR_HOST, GOOGLE_APPLICATION_CREDENTIALS }) =>
      PAWL_STORE === "firestore-rest" && !FIRESTORE_EMULATOR_HOST && !GOOGLE_APPLICATION_CREDENTIALS
        ? "PAWL_STORE is firestore-rest, which needs GOOGLE_APPLICATION_CREDENTIALS (a service account's key file) or FIRESTORE_EMULATOR_HOST. Set one of them"
        : undefined,
  },
  {
    name: "wake-with-secret",
    why: "The functions that are woken ask for it.",
    of: ["PAWL_WAKE_URL", "PAWL_RUN_SECRET"],
    broken: ({ PAWL_WAKE_URL, PAWL_RUN_SECRET }) =>
      PAWL_WAKE_URL && !PAWL_RUN_SECRET
        ? "PAWL_WAKE_URL is set without PAWL_RUN_SECRET, which the functions ask for. Set both, or neither"
        : undefined,
  },
  {
    name: "webhook-with-secret",
    why: "A call that is not signed could come from anybody.",
    of: ["PAWL_WEBHOOK_URL", "PAWL_WEBHOOK_SECRET"],
    broken: ({ PAWL_WEBHOOK_URL, PAWL_WEBHOOK_SECRET }) =>
      Boolean(PAWL_WEBHOOK_URL) !== Boolean(PAWL_WEBHOOK_SECRET)
        ? "PAWL_WEBHOOK_URL and PAWL_WEBHOOK_SECRET belong together. Set both, or neither"
        : undefined,
  },
];

/** Broken rules, each with what to do. What is not of its form is no contradiction: it was told already. */
export function contradictions({ given, malformed }: Reading): string[] {
  return togetherRules
    .filter(({ of }) => !of.some((name) => malformed.has(name)))
    .flatMap(({ broken }) => broken(given) ?? []);
}
