import { type Command, Option } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import type { Log } from "../../../shared/ports/log.ts";
import type { TaskFilter, Unread } from "../../../shared/ports/store.ts";
import type { Task } from "../../../shared/task/document.ts";
import { states } from "../../../shared/task/table.ts";
import { agentsFolder, checkAgents } from "../../agents.ts";
import { logger, oneLine, say, sayJson } from "../output.ts";

interface Options {
  readonly agent?: string;
  readonly state?: Task["state"];
  readonly limit: string;
  readonly cursor?: string;
  readonly json?: boolean;
}

export function addTasks(program: Command, config: () => Config): void {
  program
    .command("tasks")
    .description("list tasks")
    .option("--agent <name>", "of this agent")
    .addOption(new Option("--state <state>", "in this state").choices(states))
    .option("--limit <n>", "how many at once", "20")
    .option("--cursor <text>", "go on where the last page ended")
    .option("--json", "answer in JSON")
    .addHelpText("after", "\nExample:\n  pawl tasks --agent echo --state failed")
    .action(async ({ agent, state, limit, cursor, json = false }: Options, command: Command) => {
      const count = Number(limit);
      if (!Number.isInteger(count) || count < 1 || count > 1_000)
        command.error(`--limit ${limit}: it should be a whole number from 1 to 1000`);
      await using deps = await wire(config(), logger(json));
      const filter: TaskFilter = { ...(agent !== undefined && { agent }), ...(state && { state }) };
      const page = await deps.store.list(filter, count, cursor);
      // One that is gone may have left tasks, which are shown: only a name that nobody ever had is a mistake.
      if (agent !== undefined && page.tasks.length === 0 && !cursor)
        await checkAgents(
          [agent],
          agentsFolder(),
          async () => (await deps.store.list({ agent }, 1)).tasks.length > 0,
        );
      warnOf(deps.log, page.unreadable);
      if (json) return sayJson(page);
      for (const task of page.tasks) say(row(task));
      if (page.tasks.length === 0) say("no tasks");
      if (page.cursor) say(`more: --cursor ${page.cursor}`);
    });
}

/** So many are named. */
const NAMED = 10;

/** What lies among the tasks and can't be read: said beside the answer, which goes on without it. */
export function warnOf(log: Log, unreadable: readonly Unread[] = []): void {
  if (unreadable.length === 0) return;
  const named = unreadable.slice(0, NAMED).map(({ key, why }) => `${key}: ${why}`);
  log("warn", "documents.unreadable", { count: unreadable.length, which: named.join(". ") });
}

/** One task in a line. */
export function row(task: Task): string {
  const { id, agent, state, updatedAt, attempts } = task;
  const why =
    task.state === "failed" ? `${task.error.code}: ${oneLine(task.error.message).slice(0, 80)}` : "";
  const failures = attempts > 0 ? `failures ${attempts}` : "";
  const when = new Date(updatedAt).toISOString().slice(0, 19);
  return [when, state.padEnd(10), agent.padEnd(16), id, failures, why].filter(Boolean).join("  ");
}
