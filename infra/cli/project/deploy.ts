import { delimiter, dirname, join } from "node:path";
import { type Command, Option } from "commander";
import { agentsFolder, loadAgent } from "../../agents.ts";
import { kindOf, ROOT, TARGETS, type Target } from "../../build/targets.ts";
import { commandsOf } from "../../deploy/commands.ts";
import { say, sayJson } from "../output.ts";

interface Options {
  readonly target: Target;
  readonly env?: string;
  readonly dryRun?: boolean;
  readonly ensure: boolean;
  readonly json?: boolean;
}

export function addDeploy(program: Command): void {
  program
    .command("deploy")
    .description("check, build and deploy one function")
    .argument("<function>", "an agent's name, or api, dispatch, reconcile")
    .addOption(new Option("--target <platform>", "where it will run").choices(TARGETS).default("cloudflare"))
    .option("--env <name>", "[env.NAME] of wrangler.toml, or gcp.NAME.env: staging, production, …")
    .option("--dry-run", "print every command and file, and change nothing")
    .option("--no-ensure", "leave streams and consumers alone: this machine can't reach NATS")
    .option("--json", "answer in JSON")
    .addHelpText(
      "after",
      "\nAn agent's streams are ensured with NATS_URL, NATS_CREDS, NATS_USER and NATS_PASSWORD of this environment.\nExample:\n  npm run deploy -- echo --target gcp --dry-run",
    )
    .action(async (name: string, options: Options) => {
      const { target, env, ensure, json } = options;
      const dryRun = options.dryRun ?? false;
      const agents = agentsFolder();
      if (kindOf(name) === "agent") await loadAgent(name, agents);
      const tell = json ? () => {} : say;
      // wrangler takes a second to load, and gcloud's part does not need it.
      const platform =
        target === "cloudflare"
          ? (await import("../../deploy/cloudflare.ts")).cloudflare(env)
          : (await import("../../deploy/gcp.ts")).gcp(env);
      // wrangler is ours, unless there is another on the path, and runs on the Node that runs this.
      const path = [dirname(process.execPath), process.env.PATH, join(ROOT, "node_modules/.bin")];
      const { deploy } = await import("../../deploy/deployment.ts");
      const commands = commandsOf(dryRun, tell, {
        ...process.env,
        PATH: path.join(delimiter),
        WRANGLER_SEND_METRICS: "false",
        NO_COLOR: "1",
      });
      const settings = { target, dryRun, ensure, ...(env && { env }) };
      const deployed = await deploy(name, settings, platform, commands, agents, tell);
      if (json) sayJson(deployed);
      else say(dryRun ? `dry run: ${deployed.service} was not deployed` : `deployed ${deployed.service}`);
    });
}
