import { relative, resolve } from "node:path";
import { type Config, configFrom, storeIdentity } from "../../functions/wiring/config.ts";
import { connectNats } from "../../functions/wiring/wire.node.ts";
import { jetstreamBus } from "../../shared/adapters/jetstream/jetstream.ts";
import { PawlError } from "../../shared/errors/errors.ts";
import type { Env, Variable } from "../../shared/settings/variable.ts";
import { readVariable, type VariableName, variables } from "../../shared/settings/variables.ts";
import { streamName } from "../../shared/task/names.ts";
import { loadAgent } from "../agents.ts";
import { type Built, buildFunction } from "../build/build.ts";
import { type FunctionKind, kib, kindOf, type Target } from "../build/targets.ts";
import { type Commands, shown } from "./commands.ts";

/** One function on its way to a platform. */
export interface Deployment {
  readonly function: string;
  readonly kind: FunctionKind;
  readonly built: Built;
  /** When the platform wakes it. None for the API, which answers requests. */
  readonly cron?: string;
  readonly commands: Commands;
}

export interface DeployOptions {
  readonly target: Target;
  readonly env?: string;
  readonly dryRun: boolean;
  /** False: streams and consumers are left alone, for machines that can't reach NATS. */
  readonly ensure: boolean;
}

/** What a platform knows of itself. */
export interface Platform {
  /** Settings as the function will see them, without secrets. Where they come from, for messages. */
  readonly settings: Env;
  readonly source: string;
  /** Names of variables that the platform keeps as secrets. */
  readonly secrets: readonly string[];
  /** Finds what is missing, before anything is changed: each with the command that mends it. */
  missing(deployment: Pick<Deployment, "function" | "commands">): Promise<readonly string[]>;
  deploy(deployment: Deployment): Promise<string>;
}

/** The API has no POST /run. */
export function secretsOf(name: string, secrets: readonly string[]): readonly string[] {
  return kindOf(name) === "api" ? secrets.filter((one) => one !== "PAWL_RUN_SECRET") : secrets;
}

const CRON: Record<FunctionKind, string | undefined> = {
  agent: "* * * * *",
  dispatch: "* * * * *",
  reconcile: "0 6 * * 1",
  api: undefined,
};

export interface Deployed {
  readonly function: string;
  readonly target: Target;
  readonly service: string;
  readonly dryRun: boolean;
  readonly bundle: { readonly file: string; readonly bytes: number; readonly gzip: number };
  readonly commands: readonly string[];
  readonly warnings: readonly string[];
}

/** Checks, ensures, builds, deploys: in this order, so that what fails early has changed nothing. */
export async function deploy(
  name: string,
  options: DeployOptions,
  platform: Platform,
  commands: Commands,
  agents: string,
  tell: (line: string) => void,
): Promise<Deployed> {
  const { target, dryRun } = options;
  const kind = kindOf(name);
  const placeholders = checkPlaceholders(platform, dryRun);
  const config = configOf(platform);
  const warnings = [...placeholders, ...unwoken(kind, config, platform)];
  for (const warning of warnings) tell(`! ${warning}`);
  const missing = dryRun ? [] : await platform.missing({ function: name, commands });
  if (missing.length > 0) throw new PawlError("deploy_incomplete", missing.join("\n"));
  if (kind === "agent") await ensureQueues(name, agents, platform, options, tell);
  const built = await buildFunction(name, target, agents, resolve("dist"));
  const file = relative(process.cwd(), built.file);
  tell(`built ${file} (${kib(built.gzip)} KiB gzipped), with ${platform.source}`);
  const cron = CRON[kind];
  const service = await platform.deploy({ function: name, kind, built, commands, ...(cron && { cron }) });
  return {
    function: name,
    target,
    service,
    dryRun,
    bundle: { file, bytes: built.bytes, gzip: built.gzip },
    commands: commands.made.map(shown),
    warnings,
  };
}

/** Placeholders may stay for a dry run. */
function checkPlaceholders({ settings, source }: Platform, dryRun: boolean): string[] {
  const placeholders = Object.entries(settings)
    .filter(([, value]) => /\bexample\.com\b|^your-/.test(value ?? ""))
    .map(([name, value]) => `${name} in ${source} is still the placeholder ${value}`);
  if (placeholders.length > 0 && !dryRun) {
    throw new PawlError("setting_invalid", `${placeholders.join("\n")}\nWrite your own there`);
  }
  return placeholders;
}

/** As the function will read it, but for its secrets: contradictions are found here, not by a function that fails at night. */
function configOf({ settings, secrets }: Platform, own: Env = {}): Config {
  const rows: Readonly<Record<string, Variable>> = variables;
  // Values of secrets stay where they are; these only tell the checks that they will be there.
  const there = Object.fromEntries(secrets.map((name) => [name, rows[name]?.standIn ?? "x".repeat(32)]));
  return configFrom({ ...settings, ...there, ...own });
}

/** A reconciliation that needs longer than one invocation, or is cut off, goes on when it is woken. */
function unwoken(kind: FunctionKind, { wakeUrl }: Config, { source }: Platform): string[] {
  if (wakeUrl || (kind !== "reconcile" && kind !== "dispatch")) return [];
  return [
    `PAWL_WAKE_URL is not in ${source}: a reconciliation that is cut off goes on only the next Monday. docs/deploy.md says how to set it`,
  ];
}

/** Who deploys connects with an identity of their own, from their environment; the address may be theirs too. */
const IDENTITY: readonly VariableName[] = ["NATS_CREDS", "NATS_USER", "NATS_PASSWORD"];

async function ensureQueues(
  name: string,
  agents: string,
  platform: Platform,
  { dryRun, ensure }: DeployOptions,
  tell: (line: string) => void,
): Promise<void> {
  const { lanes } = (await loadAgent(name, agents)).limits;
  const url = readVariable(process.env, "NATS_URL");
  const identity = Object.fromEntries(IDENTITY.map((one) => [one, process.env[one]]));
  const config = configOf(platform, { ...identity, ...(url && { NATS_URL: url }) });
  const queues = Array.from({ length: lanes }, (_, lane) => ({
    namespace: config.settings.namespace,
    agent: name,
    lane,
    generation: config.settings.generation,
  }));
  if (dryRun || !ensure) {
    if (ensure) tell(`would ensure ${queues.map(streamName).join(", ")} at ${config.nats.url}`);
    return;
  }
  tell(`ensuring ${queues.length} queue(s) at ${config.nats.url}`);
  // No store: the bucket of one that is not used would be created.
  const nc = await connectNats(config);
  await using _ = { [Symbol.asyncDispose]: () => nc.close() };
  const bus = await jetstreamBus(nc, config.settings, storeIdentity(config));
  for (const queue of queues) {
    const changes = await bus.ensure(queue, "correct");
    tell(`${streamName(queue)}: ${changes.length > 0 ? changes.join("; ") : "as it should be"}`);
  }
}
