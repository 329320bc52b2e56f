import type { Given, VariableName, variables } from "../../shared/settings/variables.ts";
import { type FunctionKind, OWN_FUNCTIONS, type Target } from "../build/targets.ts";

type SecretName = {
  [N in VariableName]: (typeof variables)[N] extends { readonly secret: true } ? N : never;
}[VariableName];

interface SecretRule {
  /** Kinds of functions that have a use for it: no other is given it. */
  readonly for: readonly FunctionKind[];
  /** Whether such a function can't do without it, with these settings. */
  readonly needed: (given: Given, kind: FunctionKind, target: Target) => boolean;
}

const ALL: readonly FunctionKind[] = ["agent", ...OWN_FUNCTIONS];
const never = () => false;

/** Pawl's own secrets, by who gets them. */
const rules: Readonly<Record<SecretName, SecretRule>> = {
  // The API has no POST /run, but wakes others by theirs.
  PAWL_RUN_SECRET: {
    for: ALL,
    needed: (given, kind) => kind !== "api" || given.PAWL_WAKE_URL !== undefined,
  },
  NATS_CREDS: { for: ALL, needed: never },
  NATS_PASSWORD: { for: ALL, needed: (given) => given.NATS_USER !== undefined },
  // A function on Google's platform has an account of its own.
  GOOGLE_APPLICATION_CREDENTIALS: {
    for: ALL,
    needed: (given, _kind, target) => target === "cloudflare" && given.PAWL_STORE !== "nats-kv",
  },
  ANTHROPIC_API_KEY: { for: ["agent"], needed: never },
  PAWL_SEAL_KEY: { for: ALL, needed: never },
  OTEL_EXPORTER_OTLP_HEADERS: { for: ALL, needed: never },
  PAWL_WEBHOOK_SECRET: { for: ALL, needed: (given) => given.PAWL_WEBHOOK_URL !== undefined },
};

export const isOwnSecret = (name: string): name is SecretName => name in rules;

/** Whose secrets they are. */
export interface Needing {
  readonly kind: FunctionKind;
  readonly target: Target;
  readonly given: Given;
  /** What its agent declares. */
  readonly declared: readonly string[];
  /** Of Pawl's own: those that this project keeps as secrets, beside what every project needs. */
  readonly kept: readonly string[];
}

/** What a function is given, and can't be deployed without. */
export function secretsNeeded({ kind, target, given, declared, kept }: Needing): readonly string[] {
  const own = (Object.entries(rules) as [SecretName, SecretRule][])
    .filter(([name, rule]) => kept.includes(name) || rule.needed(given, kind, target))
    .filter(([, rule]) => rule.for.includes(kind))
    .map(([name]) => name);
  return [...own, ...declared];
}

/** Of those that a function has: the ones that nobody there reads. */
export function secretsLeft(there: Iterable<string>, { kind, declared }: Needing): readonly string[] {
  return [...there].filter(
    (name) => !declared.includes(name) && !(isOwnSecret(name) && rules[name].for.includes(kind)),
  );
}
