import type { Command } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { pauseAgent, resumeAgent } from "../../../shared/audit/operations.ts";
import { WHY_LIMIT } from "../../../shared/pause/pause.ts";
import { checkAgentName } from "../../../shared/task/names.ts";
import { agentsFolder, checkAgents } from "../../agents.ts";
import { commandActor } from "../actor.ts";
import { logger, say, sayJson } from "../output.ts";
import { pauseText } from "./status.ts";

interface Options {
  readonly why?: string;
  readonly json?: boolean;
}

const HELP = `
Runners and functions of the agent take nothing from its queues any more, within five seconds. What runs goes on, and is
stored; its retries, what it waits for and what is submitted meanwhile wait in their queues, and cost no delivery.
Examples:
  pawl pause echo --why "the board is down"
  pawl resume echo`;

/** Commands by which nothing new of an agent begins, and begins again. */
export function addPause(program: Command, config: () => Config): void {
  const connected = async (agent: string) => {
    checkAgentName(agent);
    const given = config();
    const deps = await wire(given, logger(false));
    // One that is gone may have left tasks: only a name that nobody ever had is a mistake.
    const wasThere = async () => (await deps.store.list({ agent }, 1)).tasks.length > 0;
    await checkAgents([agent], agentsFolder(), wasThere).catch(async (error: unknown) => {
      await deps[Symbol.asyncDispose]();
      throw error;
    });
    return { ...deps, actor: commandActor() };
  };

  program
    .command("pause")
    .description("let nothing new of an agent begin; what runs goes on")
    .argument("<agent>", "the agent's name")
    .option("--why <text>", `in your words, for whoever finds it paused (${WHY_LIMIT} characters)`)
    .option("--json", "answer in JSON")
    .addHelpText("after", HELP)
    .action(async (agent: string, { why, json = false }: Options, command: Command) => {
      if (why !== undefined && why.length > WHY_LIMIT)
        command.error(`--why has ${why.length} characters; ${WHY_LIMIT} is the most`);
      await using deps = await connected(agent);
      const { paused, before } = await pauseAgent(deps, agent, why);
      if (json) sayJson({ agent, paused, before });
      else if (before) say(`${agent} was paused already, ${pauseText(before)}`);
      else say(`${agent} is paused: within 5 s nothing new begins. pawl resume ${agent} ends it`);
    });

  program
    .command("resume")
    .description("let an agent that was paused begin again")
    .argument("<agent>", "the agent's name")
    .option("--json", "answer in JSON")
    .addHelpText("after", "\nExample:\n  pawl resume echo")
    .action(async (agent: string, { json = false }: Options) => {
      await using deps = await connected(agent);
      const { before } = await resumeAgent(deps, agent);
      if (json) sayJson({ agent, before });
      else say(before ? `${agent} goes on. It was paused ${pauseText(before)}` : `${agent} was not paused`);
    });
}
