import { configFrom } from "../../../functions/wiring/config.ts";
import type { Settings } from "../../../shared/settings/settings.ts";
import type { StandIn } from "../stand-in/stand-in.ts";
import type { DevAgent } from "./changes/plan.ts";
import type { Servers } from "./servers.ts";
import { authorsOwn, type Declared, forCommands, missingSecrets, ownOf, type Sources } from "./variables.ts";

type Values = Readonly<Record<string, string>>;

/** What leads to the parts of dev that run for as long as it does. */
export interface Parts {
  readonly servers: Servers;
  readonly standIn: StandIn;
  readonly runSecret: string;
  readonly wakeUrl: string;
  readonly agentsFolder: string;
}

/** The variables of every function and of commands: the author's, and over them those that lead to dev's own servers. */
export interface Environment {
  of(name: string): Values;
  readonly forCommands: Values;
  /** The same with the author's secrets, which are shown nowhere. */
  readonly forCommandsWhole: Values;
  /** What people should know of it. */
  readonly notes: readonly string[];
  readonly settings: Settings;
}

/** Throws where Pawl's settings are wrong, before any function does. */
export function environmentOf(sources: Sources, agents: readonly DevAgent[], parts: Parts): Environment {
  const declared: Declared = new Map(agents.map(({ name, secrets }) => [name, secrets]));
  const own = authorsOwn(sources, declared);
  const { servers, standIn, runSecret, wakeUrl, agentsFolder } = parts;
  const waking = { PAWL_RUN_SECRET: runSecret, PAWL_WAKE_URL: wakeUrl };
  const hasKey = own.ANTHROPIC_API_KEY !== undefined;
  const model = (name: string): Values =>
    hasKey ? {} : { ANTHROPIC_API_KEY: "stand-in", ANTHROPIC_BASE_URL: standIn.urlFor(name) };
  const of = (name: string) => ({
    ...ownOf(name, own, declared),
    ...model(name),
    ...servers.forFunction(name),
    ...waking,
  });
  const commands = { PAWL_AGENTS_DIR: agentsFolder, ...servers.forCommands, ...waking };
  const missing = missingSecrets(own, declared).map(
    ({ agent, secret }) => `! ${agent} needs ${secret}: write it into .dev.vars, or set it in the shell`,
  );
  const stands = "ANTHROPIC_API_KEY is not set, so a stand-in answers for the model";
  return {
    of,
    forCommands: { ...forCommands(own, "without secrets"), ...commands },
    forCommandsWhole: { ...forCommands(own, "with secrets"), ...commands },
    notes: [...(hasKey ? [] : [stands]), ...missing],
    settings: configFrom(of("api")).settings,
  };
}

/** For a shell to read. */
export function asExports(values: Values): string {
  return Object.entries(values)
    .map(([name, value]) => `export ${name}='${value.replaceAll("'", `'\\''`)}'\n`)
    .join("");
}
