import { delimiter, dirname, join } from "node:path";
import { type Command, Option } from "commander";
import { PawlError } from "../../../shared/errors/errors.ts";
import { agentsFolder, loadAgent } from "../../agents.ts";
import { kindOf, TARGETS, type Target } from "../../build/targets.ts";
import { commandsOf } from "../../deploy/commands.ts";
import type { Deployed, Deploying, Prepared } from "../../deploy/deployment.ts";
import { obstacles } from "../../deploy/plan.ts";
import { planLines } from "../../deploy/said.ts";
import { PACKAGE, projectFolder, withDocs } from "../../project.ts";
import { say, sayError, sayJson } from "../output.ts";

interface Options {
  readonly target: Target;
  readonly env?: string;
  readonly all?: boolean;
  readonly dryRun?: boolean;
  readonly ensure: boolean;
  readonly replay: boolean;
  readonly json?: boolean;
}

const HELP = `
A dry run says what would change against what is deployed, which secrets are there and which are missing, which other
functions have to be deployed along, and how to go back. It ends with 1 if something is missing.
--all deploys the agents, then dispatch, reconcile and api; it checks everything first, and stops at the first failure.
An agent's handler is run on the journals of its tasks that are under way, without an effect (pawl replay --help), and those that
would not go on are named.
An agent's streams are ensured, and its tasks read, with NATS_URL, NATS_CREDS, NATS_USER and NATS_PASSWORD of this environment.
Examples:
  npx pawl deploy echo --target gcp --dry-run
  npx pawl deploy --all --env staging`;

export function addDeploy(program: Command): void {
  program
    .command("deploy")
    .description("check, build and deploy one function, or all of them")
    .argument("[function]", "an agent's name, or api, dispatch, reconcile")
    .option("--all", "every agent, dispatch, reconcile and api")
    .addOption(new Option("--target <platform>", "where it will run").choices(TARGETS).default("cloudflare"))
    .option("--env <name>", "[env.NAME] of wrangler.toml, or gcp.NAME.env: staging, production, …")
    .option("--dry-run", "say what would be done, and how to go back, and change nothing")
    .option("--no-ensure", "leave streams and consumers alone: this machine can't reach NATS")
    .option(
      "--no-replay",
      "don't replay tasks under way on the new code, to warn of those that would not go on",
    )
    .option("--json", "answer in JSON")
    .addHelpText("after", HELP)
    .action(async (name: string | undefined, options: Options, command: Command) => {
      if ((name === undefined) !== (options.all ?? false))
        command.error("Name one function, or give --all for every one of them");
      const deployingOf = await deployings(options);
      if (name === undefined) await everything(deployingOf, options);
      else await one(name, deployingOf(), options);
    });
}

async function one(name: string, deploying: Deploying, { json }: Options): Promise<void> {
  const { agents, options, tell } = deploying;
  if (kindOf(name) === "agent") await loadAgent(name, agents);
  const { carryOut, prepare } = await import("../../deploy/deployment.ts");
  const prepared = await prepare(name, deploying);
  if (options.dryRun) sayPlan(prepared, tell);
  else for (const warning of prepared.warnings) tell(`! ${warning}`);
  const deployed = await carryOut(prepared, deploying);
  if (json) sayJson(deployed);
  else if (options.dryRun) say(`dry run: ${deployed.service} was not deployed`);
  else sayDeployed(deployed);
  if (obstacles(deployed).length > 0) process.exitCode = 1;
}

async function everything(deployingOf: () => Deploying, { json, dryRun }: Options): Promise<void> {
  const { deployAll } = await import("../../deploy/all.ts");
  const { agents, tell } = deployingOf();
  const all = await deployAll(deployingOf, agents, (prepared) => dryRun && sayPlan(prepared, tell));
  const names = (list: readonly Deployed[]) => list.map((one) => one.function).join(", ") || "nothing";
  if (json) sayJson(all);
  else if (!all.failed) say(`${dryRun ? "dry run: nothing was" : `${names(all.done)}:`} deployed`);
  if (all.failed) {
    const { function: name, message } = all.failed;
    const far = `Deployed: ${names(all.done)}. Not tried: ${all.left.join(", ") || "nothing"}`;
    process.exitCode = 1;
    if (!json)
      process.exitCode = sayError(new PawlError("deploy_failed", `${name}: ${message}\n${far}`), false);
  } else if (all.done.some((one) => obstacles(one).length > 0)) process.exitCode = 1;
}

function sayPlan({ warnings, plan }: Prepared, tell: (line: string) => void): void {
  for (const warning of warnings) tell(`! ${warning}`);
  for (const line of planLines(plan)) tell(line);
}

/** What whoever deployed it wants to know next. */
function sayDeployed({ service, secrets, along, goBack }: Deployed): void {
  say(`deployed ${service}`);
  for (const { name, is, todo } of secrets) if (is === "left over") say(`  secret ${name}: ${todo}`);
  for (const { function: name, is, why, todo } of along)
    if (is === "outdated" || is === "not deployed") say(`  ${name} is ${is}: ${[...why, todo].join(", ")}`);
  for (const line of goBack.commands) say(`  to go back: ${line}`);
}

/** wrangler is ours, unless there is another on the path, and runs on the Node that runs this. */
async function deployings(options: Options): Promise<() => Deploying> {
  const { target, env, ensure, replay, json } = options;
  const dryRun = options.dryRun ?? false;
  const tell = json ? () => {} : (line: string) => say(withDocs(line));
  const agents = agentsFolder();
  // wrangler takes a second to load, and gcloud's part does not need it.
  const platform =
    target === "cloudflare"
      ? (await import("../../deploy/cloudflare.ts")).cloudflare(env)
      : (await import("../../deploy/gcp.ts")).gcp(env);
  const bins = [projectFolder(), PACKAGE].map((folder) => join(folder, "node_modules/.bin"));
  const path = [dirname(process.execPath), process.env.PATH, ...new Set(bins)];
  const own = { PATH: path.join(delimiter), WRANGLER_SEND_METRICS: "false", NO_COLOR: "1" };
  return () => ({
    options: { target, dryRun, ensure, replay, ...(env && { env }) },
    platform,
    commands: commandsOf(dryRun, tell, { ...process.env, ...own }),
    agents,
    tell,
  });
}
