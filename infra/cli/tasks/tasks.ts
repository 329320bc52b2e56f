import { type Command, Option } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import type { Log } from "../../../shared/ports/log.ts";
import type { TaskFilter, TaskPage, TaskStore, Unread } from "../../../shared/ports/store.ts";
import type { Task } from "../../../shared/task/document.ts";
import { states } from "../../../shared/task/table.ts";
import { isFound } from "../../../shared/web/api/search.ts";
import { agentsFolder, checkAgents } from "../../agents.ts";
import { logger, oneLine, say, sayJson } from "../output.ts";

interface Options {
  readonly agent?: string;
  readonly state?: Task["state"];
  readonly limit: string;
  readonly owner?: string;
  readonly label?: string;
  readonly code?: string;
  readonly cursor?: string;
  readonly json?: boolean;
}

export function addTasks(program: Command, config: () => Config): void {
  program
    .command("tasks")
    .description("list tasks")
    .option("--agent <name>", "of this agent")
    .addOption(new Option("--state <state>", "in this state").choices(states))
    .option("--owner <name>", "submitted by this owner")
    .option("--label <name=value>", "with this label, or with this name and any value")
    .option("--code <code>", "dead letters with this error")
    .option("--limit <n>", "how many at once", "20")
    .option("--cursor <text>", "go on where the last page ended")
    .option("--json", "answer in JSON")
    .addHelpText("after", "\nExample:\n  pawl tasks --agent echo --state failed")
    .action(
      async (
        { agent, state, owner, label, code, limit, cursor, json = false }: Options,
        command: Command,
      ) => {
        const count = Number(limit);
        if (!Number.isInteger(count) || count < 1 || count > 1_000)
          command.error(`--limit ${limit}: it should be a whole number from 1 to 1000`);
        if (code !== undefined && state !== undefined && state !== "failed")
          command.error(`--code is of dead letters, which are failed: leave out --state ${state}`);
        await using deps = await wire(config(), logger(json));
        const filter: TaskFilter = {
          ...(agent !== undefined && { agent }),
          ...(state && { state }),
          ...(owner !== undefined && { owner }),
          ...(code !== undefined && { state: "failed" as const }),
        };
        const isSought =
          label === undefined && code === undefined ? undefined : isFound({ label, error: code });
        const page = await pageOf(deps.store, filter, count, cursor, isSought);
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
      },
    );
}

/** Tasks that are read for one page of those with a label or a code, which no store can look for. */
const MOST_READ = 10_000;

/** A page of those that are sought. It may be short, or empty, with a cursor to go on from. */
async function pageOf(
  store: TaskStore,
  filter: TaskFilter,
  count: number,
  from: string | undefined,
  isSought: ((task: Task) => boolean) | undefined,
): Promise<TaskPage> {
  if (!isSought) return store.list(filter, count, from);
  const tasks: Task[] = [];
  const unreadable: Unread[] = [];
  let cursor = from;
  for (let read = 0; ; ) {
    // No more than there is room for: a cursor names the end of what was asked for.
    const page = await store.list(filter, count - tasks.length, cursor);
    tasks.push(...page.tasks.filter(isSought));
    unreadable.push(...(page.unreadable ?? []));
    ({ cursor } = page);
    read += Math.max(1, page.tasks.length);
    if (cursor === undefined || tasks.length >= count || read >= MOST_READ) break;
  }
  return { tasks, ...(cursor !== undefined && { cursor }), ...(unreadable.length > 0 && { unreadable }) };
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
