import { createHash } from "node:crypto";
import type { Env } from "../../shared/settings/variable.ts";
import { readVariable } from "../../shared/settings/variables.ts";
import { shortHash } from "../../shared/values/hashes.ts";
import type { KnownAgent } from "../agents.ts";
import type { FunctionKind } from "../build/targets.ts";

/** What a function knows of one agent, by field: lanes, input, … */
type Carried = Readonly<Record<string, string>>;

/**
 * What a function was built from. It is kept with the function on its platform, as PAWL_DEPLOYED: whoever goes back to
 * an earlier version there gets that one's back along with it.
 */
export interface Manifest {
  /** The bundle's hash. */
  readonly bundle: string;
  /** What it carries of each agent; its hash where there are too many to name. */
  readonly agents: Readonly<Record<string, Carried>> | string;
}

/** Cloudflare takes no longer variable than 5 KB. */
const MOST = 4_500;

const FIELDS: Record<FunctionKind, readonly (keyof typeof facts)[]> = {
  agent: ["lanes"],
  dispatch: ["lanes", "dispatchTimeout", "schedules"],
  reconcile: ["lanes"],
  api: ["lanes", "input"],
};

const facts = {
  lanes: ({ lanes }: KnownAgent) => String(lanes),
  dispatchTimeout: ({ dispatchTimeout }: KnownAgent) => `${dispatchTimeout}ms`,
  schedules: ({ schedules }: KnownAgent) => (schedules.length > 0 ? hash(schedules) : "none"),
  input: ({ inputSchema }: KnownAgent) => (inputSchema ? hash(inputSchema) : "any"),
};

const hash = (value: unknown) => shortHash(JSON.stringify(value));

/** What a function of this kind carries of all agents, as they are now. */
export function carriedBy(kind: FunctionKind, known: readonly KnownAgent[]): Record<string, Carried> {
  const of = (agent: KnownAgent) =>
    Object.fromEntries(FIELDS[kind].map((field) => [field, facts[field](agent)]));
  return Object.fromEntries(known.map((agent) => [agent.name, of(agent)]));
}

export function manifestOf(bundle: Uint8Array, kind: FunctionKind, known: readonly KnownAgent[]): Manifest {
  const agents = carriedBy(kind, known);
  const digest = createHash("sha256").update(bundle).digest("hex").slice(0, 12);
  return { bundle: digest, agents };
}

/** With letters only that no shell and no platform takes for something else. */
export function writeManifest({ bundle, agents }: Manifest): string {
  const fields = Object.entries(agents).flatMap(([agent, carried]) =>
    Object.entries(carried as Carried).map(([field, value]) => [`${agent}.${field}`, value]),
  );
  const text = new URLSearchParams([["bundle", bundle], ...fields] as [string, string][]).toString();
  return text.length <= MOST ? text : `bundle=${bundle}&agents=${hash(agents)}`;
}

/** None where the function was deployed before deploys were recorded. */
export function readManifest(settings: Env): Manifest | undefined {
  const written = new URLSearchParams(readVariable(settings, "PAWL_DEPLOYED") ?? "");
  const bundle = written.get("bundle");
  if (!bundle) return undefined;
  const whole = written.get("agents");
  if (whole) return { bundle, agents: whole };
  const agents: Record<string, Record<string, string>> = {};
  for (const [key, value] of written) {
    const [agent = "", field] = key.split(".");
    if (field) agents[agent] = { ...agents[agent], [field]: value };
  }
  return { bundle, agents };
}

/** What a function carries that is not so any more, a line each. */
export function outdated(
  { agents }: Manifest,
  kind: FunctionKind,
  known: readonly KnownAgent[],
): readonly string[] {
  const now = carriedBy(kind, known);
  if (typeof agents === "string") return agents === hash(now) ? [] : ["what it carries of the agents"];
  const names = [...new Set([...Object.keys(agents), ...Object.keys(now)])].sort();
  return names.flatMap((name) => {
    const [before, after] = [agents[name], now[name]];
    if (!before) return [`${name} is new`];
    if (!after) return [`${name} is gone`];
    return Object.entries(after)
      .filter(([field, value]) => before[field] !== value)
      .map(([field, value]) => `${name}'s ${field}${shownChange(before[field], value)}`);
  });
}

/** Hashes say nothing to a reader. */
function shownChange(before: string | undefined, after: string): string {
  const isPlain = (text = "") => /^\d+(ms)?$/.test(text);
  return isPlain(before) && isPlain(after) ? `: ${before} → ${after}` : " changed";
}
