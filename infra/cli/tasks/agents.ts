import type { Command } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { type AgentQueues, agentQueues } from "../../../shared/dispatch/queues.ts";
import { sayDuration } from "../../../shared/values/duration.ts";
import { agentsFolder, knownAgents } from "../../agents.ts";
import { ensureAgent } from "../../ensure.ts";
import { columns } from "../columns.ts";
import { logger, say, sayJson } from "../output.ts";
import { pauseText } from "./status.ts";

/** Of more it is enough to know that there are so many. */
const MOST_LEFT = 1_000;

export function addAgents(program: Command, config: () => Config): void {
  program
    .command("agents")
    .description("list the agents of this project, and what is in their queues")
    .option("--ensure", "first make sure of their queues, and of their buckets where each has its own")
    .option("--json", "answer in JSON; ages are milliseconds")
    .addHelpText(
      "after",
      "\n--ensure is for agents that may make none of it themselves, and are not deployed.\nExample:\n  pawl agents --ensure",
    )
    .action(async ({ ensure = false, json = false }: { ensure?: boolean; json?: boolean }) => {
      const known = await knownAgents(agentsFolder());
      const given = config();
      await using deps = await wire(given, logger(json));
      if (ensure)
        for (const one of known)
          for (const change of await ensureAgent(deps, given.store, one))
            deps.log("info", "queue.ensured", { change });
      const agents = await agentQueues(deps, known);
      const left = (await deps.store.left?.(MOST_LEFT)) ?? 0;
      if (json) sayJson({ agents, ...(left > 0 && { left }) });
      else if (agents.length === 0) say(`no agents in ${agentsFolder()}: pawl new writes one`);
      else for (const line of queueLines(agents)) say(line);
      if (left > 0 && !json)
        say(
          `${left === MOST_LEFT ? "At least " : ""}${left} tasks that may still run are in the bucket of before agents had their own: agents with PAWL_ISOLATION=accounts do not reach them`,
        );
    });
}

/** What is in the agents' queues, as a table. */
export function queueLines(agents: readonly AgentQueues[]): readonly string[] {
  const table = columns(
    ["agent", "lanes", "pending", "in flight", "redelivered", "oldest"],
    agents.map(({ name, lanes, pending, inFlight, redelivered, oldestAge }) => {
      return [name, lanes, pending, inFlight, redelivered, oldestAge > 0 ? sayDuration(oldestAge) : "-"];
    }),
  );
  const paused = agents.flatMap(({ name, paused }) =>
    paused ? [`${name}: PAUSED ${pauseText(paused)} (pawl resume ${name})`] : [],
  );
  const left = agents.flatMap(({ name, left }) =>
    left.map(({ stream, lane, messages }) => {
      return `${name}: ${messages} left in ${stream}, of a former lane ${lane}: its runner drains it`;
    }),
  );
  return [...table, ...paused, ...left];
}
