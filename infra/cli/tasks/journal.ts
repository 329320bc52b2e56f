import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Command, Option } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { redactorOf } from "../../../functions/wiring/secrets.ts";
import { type Wired, wire } from "../../../functions/wiring/wire.node.ts";
import { type ExportedJournal, exportJournal, writeExported } from "../../../shared/replay/exported.ts";
import { withoutInput, withoutSecrets } from "../../../shared/replay/redacted.ts";
import type { State, Task } from "../../../shared/task/document.ts";
import { checkTaskId } from "../../../shared/task/names.ts";
import { states } from "../../../shared/task/table.ts";
import { agentsFolder, loadAgent } from "../../agents.ts";
import { logger, say, sayJson } from "../output.ts";
import { taskNamed } from "./status.ts";

interface Options {
  readonly to?: string;
  readonly agent?: string;
  readonly state?: State;
  readonly limit: string;
  readonly redact?: string | true;
  readonly json?: boolean;
}

const HELP = `
A journal is written with all that the task's handler was given and got: its input, the results of its calls, answers, its
result. No token, seal or owner is in it, and no value of Pawl's own secrets or the agent's that this environment has.
--redact takes the texts of the input out of all of it, and leaves out what models and tools were asked. With names, such as
--redact customer.email,note, only what lies under these. Texts of fewer than 8 characters stay where they stand beside
the input. What a model answered in other words stays: read what you export before you share it.
Examples:
  pawl journal export hello-1 > hello-1.json
  pawl journal export --agent echo --state completed --limit 50 --to journals/`;

export function addJournal(program: Command, config: () => Config): void {
  const journal = program.command("journal").description("what tasks' handlers did, as files");
  journal
    .command("export")
    .description("write tasks' journals as files, for pawl replay and for tests")
    .argument("[ids...]", "the tasks' ids")
    .option("--to <folder>", "into this folder, one file a task; else one is written to standard output")
    .option("--agent <name>", "the newest tasks of this agent, instead of ids")
    .addOption(new Option("--state <state>", "with --agent: in this state").choices(states))
    .option("--limit <n>", "with --agent: so many at most", "20")
    .option("--redact [names]", "without the input's texts, or without what these names name in it")
    .option("--json", "say what was written in JSON")
    .addHelpText("after", HELP)
    .action(async (ids: string[], options: Options, command: Command) => {
      const { to, agent, limit, redact, json = false } = options;
      const count = Number(limit);
      if (!Number.isInteger(count) || count < 1 || count > 1_000)
        command.error(`--limit ${limit}: it should be a whole number from 1 to 1000`);
      if ((ids.length === 0) === (agent === undefined))
        command.error("Name tasks, or give --agent for its newest");
      if (to === undefined && (ids.length > 1 || agent !== undefined))
        command.error("More than one journal needs --to <folder>: each is a file of its own");
      for (const id of ids) checkTaskId(id);
      await using deps = await wire(config(), logger(json));
      const written: string[] = [];
      if (to !== undefined) await mkdir(to, { recursive: true });
      for await (const task of chosen(deps, ids, options, count)) {
        const exported = await exportedOf(deps, task);
        const shared =
          redact === undefined ? exported : withoutInput(exported, redact === true ? [] : redact.split(","));
        if (to === undefined) {
          process.stdout.write(writeExported(shared));
          return;
        }
        const file = join(to, `${task.id}.json`);
        await writeFile(file, writeExported(shared));
        written.push(file);
        if (!json) say(`${file}: ${task.agent}, ${task.state}, ${shared.entries.length} entries`);
      }
      if (json) sayJson({ written });
      else if (written.length === 0) say("no tasks");
    });
}

/** Those that are named; or an agent's newest, page by page. */
async function* chosen(
  deps: Wired,
  ids: readonly string[],
  { agent, state }: Options,
  most: number,
): AsyncGenerator<Task> {
  for (const id of ids) yield await taskNamed(deps, id);
  if (agent === undefined) return;
  let left = most;
  for (let cursor: string | undefined; left > 0; ) {
    const page = await deps.store.list({ agent, ...(state && { state }) }, Math.min(left, 100), cursor);
    yield* page.tasks;
    left -= page.tasks.length;
    cursor = page.cursor;
    if (cursor === undefined) return;
  }
}

/** Without the values of secrets, as far as they are known here. */
export async function exportedOf(deps: Wired, task: Task): Promise<ExportedJournal> {
  const exported = await exportJournal(deps, task);
  const secrets = await loadAgent(task.agent, agentsFolder()).then(
    (agent) => agent.secrets,
    () => undefined,
  );
  const unset = secrets?.filter((name) => !process.env[name]) ?? [];
  if (unset.length > 0)
    deps.log("warn", "secrets.unknown", {
      task: task.id,
      reason: `${unset.join(", ")} ${unset.length > 1 ? "are" : "is"} not set here, so nobody can tell whether it is in the journal`,
    });
  return withoutSecrets(exported, redactorOf(secrets ?? [], process.env));
}
