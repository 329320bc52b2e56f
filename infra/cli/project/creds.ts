import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Command, Option } from "commander";
import { PawlError } from "../../../shared/errors/errors.ts";
import { settingsFrom } from "../../../shared/settings/settings.ts";
import { readVariable } from "../../../shared/settings/variables.ts";
import { agentsFolder, knownAgents } from "../../agents.ts";
import { planOf } from "../../creds/plan.ts";
import { FOLDER, FORMATS, type Format, writeCreds } from "../../creds/write.ts";
import { say, sayJson } from "../output.ts";

interface Options {
  readonly format: Format;
  readonly out?: string;
  readonly drills?: string;
  readonly operator?: string;
  readonly account?: string;
  readonly json?: boolean;
}

/** The agents of drills. */
const DRILLS = fileURLToPath(new URL("../../drills/agents", import.meta.url));

export function addCreds(program: Command): void {
  program
    .command("creds")
    .description("write an identity at NATS for every function and agent, that may do no more than it has to")
    .addOption(
      new Option("--format <format>", "users of a server's configuration, or JWTs")
        .choices(FORMATS)
        .default("conf"),
    )
    .option("--out <folder>", `where to (${FOLDER})`)
    .option(
      "--drills <namespace>",
      "for pawl drill --target <namespace> instead: of its agents, in its namespace",
    )
    .option("--operator <file>", "jwt: the seed of the operator's key; one is made where it is left out")
    .option("--account <file>", "jwt: the seed of the core account's key; likewise")
    .option("--json", "answer in JSON")
    .addHelpText(
      "after",
      `
Keys and passwords that are in the folder are used again, never written over: run it again when agents, their lanes or
children, or PAWL_GENERATION have changed, and reload the server. All files are for their owner's eyes (0600).
Ends with 0 when all is written, 1 when an agent or a key can't be read, 2 when used wrongly.

Examples:
  pawl creds                          users for a server of your own, in ${FOLDER}/nats.conf
  pawl creds --format jwt --operator operator.nk --out creds
  pawl creds --drills staging-drills --out drills-creds
  env $(cat ${FOLDER}/echo.env) npx pawl run echo`,
    )
    .action(async ({ format, out, drills, operator, account, json = false }: Options) => {
      if (format === "conf" && (operator !== undefined || account !== undefined))
        throw new PawlError("usage", "--operator and --account are for --format jwt");
      // What is in the folder of the project's own identities would be written over.
      if (drills !== undefined && out === undefined) throw new PawlError("usage", "--drills needs --out");
      const settings = settingsFrom({
        ...process.env,
        ...(drills !== undefined && { PAWL_NAMESPACE: drills }),
      });
      const known = await knownAgents(drills === undefined ? agentsFolder() : DRILLS);
      const hasKv = (readVariable(process.env, "PAWL_STORE") ?? "nats-kv") === "nats-kv";
      const plan = planOf(settings, known, hasKv);
      const given = { ...(operator && { operator }), ...(account && { account }) };
      const done = await writeCreds({ plan, format, folder: resolve(out ?? FOLDER), ...given });
      if (json) return sayJson({ format, ...done });
      const shown = relative(process.cwd(), done.folder) || ".";
      say(`wrote ${Object.keys(done.identities).length} identities into ${shown}`);
      for (const [name, file] of Object.entries(done.identities))
        say(`  ${name.padEnd(20)} ${join(shown, file)}`);
      if (done.reused.length > 0) say(`${done.reused.length} keys were there, and are as they were`);
      say(`Let the server's configuration include ${join(shown, done.include)}, by its path from there`);
    });
}
