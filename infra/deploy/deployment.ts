import { relative } from "node:path";
import { type Config, configFrom, storeIdentity } from "../../functions/wiring/config.ts";
import { connectNats } from "../../functions/wiring/wire.node.ts";
import { jetstreamBus } from "../../shared/adapters/jetstream/jetstream.ts";
import { ensureAgentBucket } from "../../shared/adapters/kv/open.ts";
import type { Agent } from "../../shared/agent.ts";
import { PawlError } from "../../shared/errors/errors.ts";
import type { Env, Variable } from "../../shared/settings/variable.ts";
import { readVariable, type VariableName, variables } from "../../shared/settings/variables.ts";
import { streamName } from "../../shared/task/names.ts";
import { loadAgent } from "../agents.ts";
import type { Built } from "../build/build.ts";
import { type FunctionKind, kib, type Target } from "../build/targets.ts";
import { uncarriedLine } from "../build/uncarried.ts";
import { warnedOf } from "../doctor/examine.ts";
import { alongWith } from "./along.ts";
import { candidateOf, needingOf } from "./candidate.ts";
import { type Commands, shown } from "./commands.ts";
import { writeManifest } from "./manifest.ts";
import { type Candidate, changesOf, goBackOf, obstacles, type Plan, secretStates } from "./plan.ts";
import { asked, type Looked, type Platform } from "./platform.ts";
import { secretsNeeded } from "./secrets.ts";
import { lookUnderWay } from "./under-way.ts";

export interface DeployOptions {
  readonly target: Target;
  readonly env?: string;
  readonly dryRun: boolean;
  /** False: streams and consumers are left alone, for machines that can't reach NATS. */
  readonly ensure: boolean;
  /** False: tasks under way are not replayed on the new code. */
  readonly replay: boolean;
}

const CRON: Record<FunctionKind, string | undefined> = {
  agent: "* * * * *",
  dispatch: "* * * * *",
  reconcile: "0 6 * * 1",
  api: undefined,
};

/** With what, to where, by which programs. */
export interface Deploying {
  readonly options: DeployOptions;
  readonly platform: Platform;
  readonly commands: Commands;
  /** The folder of agents. */
  readonly agents: string;
  readonly tell: (line: string) => void;
}

/** A function that is built, and of which is known what its deploy would do. */
export interface Prepared extends Candidate {
  readonly built: Built;
  readonly before: Looked;
  readonly plan: Plan;
  readonly warnings: readonly string[];
}

export interface Deployed extends Plan {
  readonly function: string;
  readonly target: Target;
  readonly service: string;
  readonly dryRun: boolean;
  readonly bundle: {
    readonly file: string;
    readonly bytes: number;
    readonly gzip: number;
    readonly limit?: number;
  };
  readonly commands: readonly string[];
  readonly warnings: readonly string[];
}

/** Checks, builds, looks. Changes nothing. `isAlone`: others are not deployed along with it. */
export async function prepare(name: string, deploying: Deploying, isAlone = true): Promise<Prepared> {
  const { options, platform, commands, agents } = deploying;
  const { target, env, dryRun } = options;
  const project = { target, platform, agents };
  const placeholders = checkPlaceholders(platform, dryRun);
  const needing = await needingOf(name, project);
  const config = configOf(platform, secretsNeeded(needing));
  const warnings = [...placeholders, ...unwoken(needing.kind, config, platform), ...warnedOf(config)];
  const away = await asked(() => platform.away(commands), String);
  if (away && !dryRun) throw new PawlError("deploy_incomplete", away);
  const candidate = await candidateOf(name, project, needing);

  const look = async (one: string): Promise<Looked> => {
    const unknown = (why: string): Looked => ({ is: "unknown", why });
    return away ? unknown(away) : asked(() => platform.look(one, commands), unknown);
  };
  const needed = secretsNeeded(needing);
  const [before, there, missing] = await Promise.all([
    look(name),
    away
      ? { problem: away }
      : asked(
          () => platform.secretsThere(name, needed, commands),
          (problem) => ({ problem }),
        ),
    away
      ? []
      : asked(
          () => platform.missing(name, commands),
          (why) => [why],
        ),
  ]);
  if (!dryRun && "problem" in there) throw new PawlError("deploy_incomplete", there.problem);
  const command = (one: string) =>
    ["npx pawl deploy", one, ...(target === "gcp" ? ["--target gcp"] : []), ...(env ? ["--env", env] : [])]
      .join(" ")
      .trim();
  const plan: Plan = {
    changes: changesOf(candidate, platform, before),
    secrets: secretStates(candidate, platform, there, before),
    missing,
    along: isAlone ? await alongWith(name, project, look, command) : [],
    goBack: goBackOf(candidate, platform, before),
  };
  return { ...candidate, before, plan, warnings };
}

/** Ensures the queues, then deploys: in this order, so that what fails early has changed least. */
export async function carryOut(prepared: Prepared, deploying: Deploying): Promise<Deployed> {
  const { name, kind, built, before, plan, manifest, needing, known, warnings } = prepared;
  const { options, platform, commands, agents, tell } = deploying;
  const wrong = obstacles(plan);
  if (wrong.length > 0 && !options.dryRun) throw new PawlError("deploy_incomplete", wrong.join("\n"));
  const stuck: string[] = [];
  if (kind === "agent") {
    const agent = await loadAgent(name, agents);
    const secrets = secretsNeeded(needing);
    await ensureQueues(name, agent, ownConfig(platform, secrets), options, tell);
    const reading = () => ownConfig(platform, secrets, READING);
    if (options.replay && options.ensure && !options.dryRun)
      stuck.push(...(await lookUnderWay(reading, name, agent)));
    for (const warning of stuck) tell(`! ${warning}`);
  }
  const file = relative(process.cwd(), built.file);
  for (const one of built.uncarried) tell(`! ${uncarriedLine(one)}`);
  const limit = built.limit ? ` of ${built.limit}` : "";
  tell(`built ${file} (${kib(built.gzip)}${limit} KiB gzipped), with ${platform.source}`);
  const cron = CRON[kind];
  const service = await platform.deploy({
    function: name,
    kind,
    built,
    secrets: secretsNeeded(needing),
    manifest: writeManifest(manifest),
    before,
    wakers: ["api", "dispatch", ...known.map((agent) => agent.name)],
    commands,
    tell,
    ...(cron && { cron }),
  });
  return {
    function: name,
    target: options.target,
    service,
    dryRun: options.dryRun,
    bundle: { file, bytes: built.bytes, gzip: built.gzip, ...(built.limit && { limit: built.limit }) },
    commands: commands.made.map(shown),
    warnings: [...warnings, ...stuck, ...built.uncarried.map(uncarriedLine)],
    ...plan,
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
function configOf({ settings }: Platform, secrets: readonly string[], own: Env = {}): Config {
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
/** What documents are read with, where this environment has it. */
const READING: readonly VariableName[] = [
  "GOOGLE_APPLICATION_CREDENTIALS",
  "FIRESTORE_EMULATOR_HOST",
  "PAWL_SEAL_KEY",
];

/** The settings as whoever deploys connects with them. `more`: other variables that are taken from their environment. */
function ownConfig(
  platform: Platform,
  secrets: readonly string[],
  more: readonly VariableName[] = [],
): Config {
  const identity = Object.fromEntries(IDENTITY.map((one) => [one, process.env[one]]));
  const url = readVariable(process.env, "NATS_URL");
  const given = Object.fromEntries(
    more.flatMap((one) => (process.env[one] ? [[one, process.env[one]]] : [])),
  );
  return configOf(platform, secrets, { ...identity, ...given, ...(url && { NATS_URL: url }) });
}

async function ensureQueues(
  name: string,
  agent: Agent,
  config: Config,
  { dryRun, ensure }: DeployOptions,
  tell: (line: string) => void,
): Promise<void> {
  const { lanes } = agent.limits;
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
  // No store: the bucket of one that is not used would be created. Only the agent's own, which it may not make.
  const nc = await connectNats(config);
  await using _ = { [Symbol.asyncDispose]: () => nc.close() };
  const bus = await jetstreamBus(nc, config.settings, storeIdentity(config));
  if (config.store === "nats-kv") await ensureAgentBucket(nc, config.settings, name);
  for (const queue of queues) {
    const changes = await bus.ensure(queue, "correct");
    tell(`${streamName(queue)}: ${changes.length > 0 ? changes.join("; ") : "as it should be"}`);
  }
}
