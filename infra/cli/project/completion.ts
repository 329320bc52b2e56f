import { Argument, type Command } from "commander";
import { agentNames, agentsFolder } from "../../agents.ts";
import { OWN_FUNCTIONS } from "../../build/targets.ts";
import { completions, SHELLS, type Shell, scripts } from "../completion.ts";
import { say, sayJson } from "../output.ts";

interface Options {
  readonly json?: boolean;
}

export function addCompletion(program: Command): void {
  program
    .command("completion")
    .description("print what a shell needs to complete pawl's commands, options, agents and states")
    .addArgument(new Argument("<shell>", "the shell").choices(SHELLS))
    .option("--json", "answer in JSON")
    .addHelpText("after", "\nExample:\n  source <(pawl completion bash)      # in ~/.bashrc")
    .action((shell: Shell, { json }: Options) => {
      const script = scripts[shell];
      if (json) sayJson({ shell, script });
      else process.stdout.write(script);
    });

  // Shells ask it with every Tab.
  program
    .command("complete", { hidden: true })
    .description("print what the last of these words may become")
    .argument("[words...]", "all after pawl, the last one perhaps empty")
    .option("--json", "answer in JSON")
    .addHelpText("after", "\nExample:\n  pawl complete -- tasks --st")
    .action(async (words: string[], { json }: Options) => {
      const agents = () => agentNames(agentsFolder()).catch(() => []);
      const functions = async () => [...(await agents()), ...OWN_FUNCTIONS];
      const found = await completions(program, words, { agents, functions });
      if (json) sayJson(found);
      else for (const one of found) say(one);
    });
}
