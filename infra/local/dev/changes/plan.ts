import type { KnownAgent } from "../../../agents.ts";

/** What dev knows of an agent beside what functions carry. */
export interface DevAgent extends KnownAgent {
  readonly secrets: readonly string[];
}

/** A bundle that was built, or a script for the stand-in. */
export interface Bundle {
  readonly file: string;
  /** All files that it is made of, packages left out: absolute paths. */
  readonly inputs: readonly string[];
  /** What it carries of all agents, as JSON. None for a script. */
  readonly carries?: string;
}

export interface Problem {
  readonly name: string;
  readonly message: string;
}

/** The state of all builds, from one to the next. */
export interface Builds {
  readonly agents: Readonly<Record<string, DevAgent>>;
  /** By function. */
  readonly bundles: Readonly<Record<string, Bundle>>;
  /** By agent: scripts for the stand-in. */
  readonly scripts: Readonly<Record<string, Bundle>>;
  /** What could not be built as it is now. Where there was a bundle before, that is kept. */
  readonly problems: readonly Problem[];
}

export const NOTHING_BUILT: Builds = { agents: {}, bundles: {}, scripts: {}, problems: [] };

/** Of the named, those that a change of these files concerns: made of one, not made yet, or not as they should be. */
export function concerned(
  names: readonly string[],
  made: Readonly<Record<string, Bundle>>,
  problems: readonly Problem[],
  changed: readonly string[],
): string[] {
  const files = new Set(changed);
  const wrong = new Set(problems.map(({ name }) => name));
  return names.filter((name) => {
    const one = made[name];
    return !one || wrong.has(name) || one.inputs.some((input) => files.has(input));
  });
}

/** Whether anything has to be built. `names`: the agents that there are now; `scripts`: those that have one. */
export function needsBuild(
  { names, scripts }: { readonly names: readonly string[]; readonly scripts: readonly string[] },
  own: readonly string[],
  before: Builds,
  changed: readonly string[],
): boolean {
  const { bundles, problems } = before;
  const functions = [...names, ...own];
  const gone = [...Object.keys(bundles).filter((name) => !functions.includes(name))];
  const silent = Object.keys(before.scripts).filter((name) => !scripts.includes(name));
  const stale = concerned(scripts.map(scriptName), scriptsOf(before), problems, changed);
  return [...gone, ...silent, ...stale, ...concerned(functions, bundles, problems, changed)].length > 0;
}

/** What a script is called where functions are too. */
export const scriptName = (agent: string) => `${agent}.model`;

export function scriptsOf({ scripts }: Builds): Record<string, Bundle> {
  return Object.fromEntries(Object.entries(scripts).map(([agent, bundle]) => [scriptName(agent), bundle]));
}

/** Every file that something is made of. */
export function filesOf({ bundles, scripts }: Builds): string[] {
  return [...Object.values(bundles), ...Object.values(scripts)].flatMap(({ inputs }) => inputs);
}
