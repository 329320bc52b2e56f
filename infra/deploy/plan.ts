import type { Env } from "../../shared/settings/variable.ts";
import type { KnownAgent } from "../agents.ts";
import type { FunctionKind } from "../build/targets.ts";
import { type Manifest, outdated, readManifest } from "./manifest.ts";
import type { Looked, Platform } from "./platform.ts";
import { isOwnSecret, type Needing, secretsLeft, secretsNeeded } from "./secrets.ts";

export interface SecretState {
  readonly name: string;
  readonly is: "there" | "missing" | "left over" | "unknown";
  /** As it is found on the platform. */
  readonly at: string;
  readonly todo?: string;
}

/** Another function, which may carry what this deploy changes. */
export interface Along {
  readonly function: string;
  readonly is: "outdated" | "not deployed" | "up to date" | "unknown";
  readonly why: readonly string[];
  readonly todo?: string;
}

/** What a deploy would do, for whoever has to decide at night: all of it is found out without changing anything. */
export interface Plan {
  /** What differs from what is deployed; where that can't be known, why. */
  readonly changes: { readonly list: readonly string[]; readonly since?: string; readonly unknown?: string };
  readonly secrets: readonly SecretState[];
  /** What else has to be there, each with the command that mends it. */
  readonly missing: readonly string[];
  readonly along: readonly Along[];
  readonly goBack: {
    readonly commands: readonly string[];
    readonly revision?: string;
    readonly note: string;
  };
}

/** A function that is built, and about to be deployed. */
export interface Candidate {
  readonly name: string;
  readonly kind: FunctionKind;
  readonly manifest: Manifest;
  readonly needing: Needing;
  readonly known: readonly KnownAgent[];
}

/** Everything that is wrong with it, as lines that say what to do. */
export function obstacles({ secrets, missing }: Plan): readonly string[] {
  return [
    ...missing,
    ...secrets
      .filter(({ is }) => is === "missing")
      .map(({ at, todo }) => `Secret ${at} is not there. ${todo}`),
  ];
}

export function changesOf(candidate: Candidate, platform: Platform, now: Looked): Plan["changes"] {
  if (now.is === "unknown") return { list: [], unknown: now.why };
  if (now.is === "none") return { list: ["it is not deployed yet: this is its first version"] };
  const { kind, manifest, needing, known } = candidate;
  const before = readManifest(now.settings);
  const code = before
    ? [
        ...(before.bundle === manifest.bundle ? [] : [`code: ${before.bundle} → ${manifest.bundle}`]),
        ...(kind === "agent" ? [] : outdated(before, kind, known)),
      ]
    : ["code: not known, it was deployed before deploys were recorded"];
  // Workers keep their secrets apart from what is deployed.
  const secrets = platform.target === "gcp" ? namesChanged(now.secrets, secretsNeeded(needing)) : [];
  const list = [...code, ...settingsChanged(now.settings, platform.settings), ...secrets];
  return { list, since: now.at ? `${now.revision} of ${now.at}` : now.revision };
}

function settingsChanged(before: Env, after: Env): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return names
    .filter((name) => name !== "PAWL_DEPLOYED" && before[name] !== after[name])
    .map((name) => `${name}: ${shown(name, before[name])} → ${shown(name, after[name])}`);
}

/** What looks like a secret in a wrong place is not shown either. */
function shown(name: string, value: string | undefined): string {
  if (value === undefined) return "not set";
  const isSecret = isOwnSecret(name) || /SECRET|TOKEN|PASSWORD|CREDENTIAL|_KEY$/.test(name);
  return isSecret ? "(not shown)" : JSON.stringify(value);
}

function namesChanged(before: readonly string[], after: readonly string[]): string[] {
  return [
    ...after.filter((name) => !before.includes(name)).map((name) => `secret ${name}: given from now on`),
    ...before.filter((name) => !after.includes(name)).map((name) => `secret ${name}: taken away`),
  ];
}

export function secretStates(
  { name, needing }: Candidate,
  platform: Platform,
  there: ReadonlySet<string> | { readonly problem: string },
  now: Looked,
): readonly SecretState[] {
  const needed = secretsNeeded(needing);
  const named = (secret: string) => ({ name: secret, at: platform.secretName(name, secret) });
  if ("problem" in there)
    return needed.map((secret) => ({ ...named(secret), is: "unknown", todo: there.problem }));
  const known = new Set([...there, ...(now.is === "there" ? now.secrets : [])]);
  return [
    ...needed.map(
      (secret): SecretState =>
        there.has(secret)
          ? { ...named(secret), is: "there" }
          : { ...named(secret), is: "missing", todo: platform.toSet(name, secret) },
    ),
    ...secretsLeft(known, needing).map(
      (secret): SecretState => ({ ...named(secret), is: "left over", todo: platform.toDrop(name, secret) }),
    ),
  ];
}

const JOURNALS =
  "Tasks that the newer code has begun go on with the older one; where its calls differ they fail with journal_mismatch, to be redriven when the newer code is back";

export function goBackOf({ name, kind }: Candidate, platform: Platform, now: Looked): Plan["goBack"] {
  const note = kind === "agent" ? JOURNALS : "It keeps nothing: any version goes on where another left off";
  if (now.is === "there")
    return { commands: platform.toGoBack(name, now.revision), revision: now.revision, note };
  const why = now.is === "none" ? "There is no earlier version" : "The present version is not known";
  return { commands: [], note: why };
}
