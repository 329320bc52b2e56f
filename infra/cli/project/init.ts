import { type Command, Option } from "commander";
import { PLATFORMS, STORES } from "../../init/choice.ts";
import { type InitOptions, init, told } from "../../init/init.ts";
import { say, sayJson } from "../output.ts";

export function addInit(program: Command): void {
  program
    .command("init")
    .description("make a project of agents in a folder: its settings, an agent with its test, a workflow")
    .argument("[name]", "a new folder; . for this one", ".")
    .addOption(new Option("--platform <name>", "where it will run").choices(PLATFORMS))
    .addOption(new Option("--store <name>", "where tasks are kept").choices(STORES))
    .option("--yes", `ask nothing: ${PLATFORMS[0]}, ${STORES[0]}`)
    .option("--no-install", "write the files only")
    .option("--pawl <from>", "where the package pawl comes from: a version, or the path of a tarball")
    .option("--json", "answer in JSON, and ask nothing")
    .addHelpText(
      "after",
      "\nWhat is there stays as it is: a package.json is given what it lacks, and all of it is named.\nExample:\n  pawl init --platform gcp --store firestore",
    )
    .action(async (name: string, options: InitOptions) => {
      const done = await init(name, options);
      if (options.json) sayJson(done);
      else for (const line of told(done)) say(line);
    });
}
