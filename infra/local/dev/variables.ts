import type { Env } from "../../../shared/settings/variable.ts";
import { rows, type VariableName } from "../../../shared/settings/variables.ts";

/** Where the author's variables come from, the weakest first. */
export interface Sources {
  /** `[vars]` of wrangler.toml. */
  readonly vars: Env;
  /** `.dev.vars`, which is for secrets and for what differs here. */
  readonly devVars: Env;
  readonly shell: Env;
}

/** Which variables agents say are theirs alone. */
export type Declared = ReadonlyMap<string, readonly string[]>;

type Values = Readonly<Record<string, string>>;

/** Stronger than `[vars]`, which is meant for production. A change cuts off what runs: it is taken over within ten seconds, not within a minute. */
const DEFAULTS: Values = { PAWL_ACK_WAIT: "6s" };

/** Said by dev itself, whatever is set: they lead to its own servers, and nothing of it may reach others. */
const OURS: ReadonlySet<string> = new Set<VariableName>([
  "NATS_URL",
  "NATS_CREDS",
  "NATS_USER",
  "NATS_PASSWORD",
  "PAWL_STORE",
  "PAWL_REPLICAS",
  "PAWL_ISOLATION",
  "GOOGLE_CLOUD_PROJECT",
  "FIRESTORE_DATABASE",
  "GOOGLE_APPLICATION_CREDENTIALS",
  "FIRESTORE_EMULATOR_HOST",
  "PAWL_RUN_SECRET",
  "PAWL_WAKE_URL",
]);

/** Settings that functions or commands read, by the table. */
const SETTINGS: ReadonlySet<string> = new Set(
  rows.flatMap(([name, { readBy }]) =>
    readBy.includes("library") || readBy.includes("function") ? [name] : [],
  ),
);
const SECRETS: ReadonlySet<string> = new Set(rows.flatMap(([name, { secret }]) => (secret ? [name] : [])));

/**
 * All that the author set, for whichever function. Of the shell only what is a setting of Pawl's, or is named by one of
 * the files or by an agent's `secrets`: the rest of it is nobody's business here.
 */
export function authorsOwn({ vars, devVars, shell }: Sources, declared: Declared = new Map()): Values {
  const named = new Set([
    ...SETTINGS,
    ...Object.keys(vars),
    ...Object.keys(devVars),
    ...[...declared.values()].flat(),
  ]);
  const ofShell = Object.entries(shell).filter(([name]) => named.has(name));
  const all = { ...given(vars), ...DEFAULTS, ...given(devVars), ...given(Object.fromEntries(ofShell)) };
  return pick(all, (name) => !OURS.has(name));
}

/** What one function gets of it. An agent's secrets are its own; Pawl's settings are everybody's. */
export function ownOf(name: string, own: Values, declared: Declared): Values {
  const isSecret = new Set([...declared.values()].flat());
  const its = new Set(declared.get(name));
  return pick(own, (one) => SETTINGS.has(one) || its.has(one) || !isSecret.has(one));
}

/** What a command in another terminal has to know, secrets left out or not. */
export function forCommands(own: Values, secrets: "with secrets" | "without secrets"): Values {
  return pick(own, (name) => SETTINGS.has(name) && (secrets === "with secrets" || !SECRETS.has(name)));
}

export interface Missing {
  readonly agent: string;
  readonly secret: string;
}

export function missingSecrets(own: Values, declared: Declared): Missing[] {
  return [...declared].flatMap(([agent, secrets]) =>
    secrets.filter((secret) => own[secret] === undefined).map((secret) => ({ agent, secret })),
  );
}

/** An empty one is as good as none. */
function given(env: Env): Values {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => (value ? [[name, value] as const] : [])),
  );
}

function pick(values: Values, isWanted: (name: string) => boolean): Values {
  return Object.fromEntries(Object.entries(values).filter(([name]) => isWanted(name)));
}
