import type { Command } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { type Wired, wire } from "../../../functions/wiring/wire.node.ts";
import { type Redrive, redrive } from "../../../shared/audit/operations.ts";
import { errorKinds, isPawlError, messageOf, PawlError } from "../../../shared/errors/errors.ts";
import type { Failed } from "../../../shared/task/document.ts";
import { checkTaskId } from "../../../shared/task/names.ts";
import { agentsFolder, checkAgents, lanesKnown } from "../../agents.ts";
import { withDocs } from "../../project.ts";
import { commandActor } from "../actor.ts";
import { logger, say, sayJson } from "../output.ts";
import { rawLines, rawText } from "../raw.ts";
import {
  fieldLines,
  journalFacts,
  journalLines,
  journalOf,
  short,
  stackLines,
  taskNamed,
  time,
} from "./status.ts";
import { row, warnOf } from "./tasks.ts";

interface Which {
  readonly agent?: string;
  readonly code?: string;
  readonly json?: boolean;
}

const PAGE = 100;

/** Dead letters: what could not be done, why, and how to try it again. */
export function addDlq(program: Command, config: () => Config): void {
  const dlq = program.command("dlq").description("dead letters: tasks that failed");

  dlq
    .command("ls")
    .description("list them")
    .option("--agent <name>", "of this agent")
    .option("--code <code>", "with this error, such as attempts_exhausted")
    .option("--json", "answer in JSON lines")
    .addHelpText("after", "\nExample:\n  pawl dlq ls --code budget_exceeded")
    .action(async (which: Which) => {
      await using deps = await wire(config(), logger(which.json ?? false));
      let count = 0;
      for await (const task of failed(deps, which)) {
        count++;
        if (which.json) sayJson(task);
        else say(row(task));
      }
      if (!which.json)
        say(count === 0 ? "no dead letters" : `${count} dead letters; see one: pawl dlq show <id>`);
    });

  dlq
    .command("show")
    .description(
      "show one: why it failed, its input, how far it came, and the message where it could not be read as a task",
    )
    .argument("<id>", "the task's id")
    .option("--json", "the whole document in JSON")
    .addHelpText("after", "\nExample:\n  pawl dlq show order-7")
    .action(async (id: string, { json = false }: { json?: boolean }) => {
      checkTaskId(id);
      await using deps = await wire(config(), logger(json));
      const task = await taskNamed(deps, id);
      if (task.state !== "failed")
        throw new PawlError(
          "illegal_transition",
          `Task ${id} is ${task.state}: only failed tasks are dead letters`,
        );
      const journal = await journalOf(deps, task);
      const raw = task.raw && { raw: { ...task.raw, text: rawText(task.raw) } };
      if (json) sayJson({ ...task, ...raw, journal: journal && journalFacts(journal) });
      else for (const line of [...letterLines(task), ...(journal ? journalLines(journal) : [])]) say(line);
    });

  dlq
    .command("redrive")
    .description("try them again: one by its id, or all; interrupted, it can be repeated")
    .argument("[id]", "the task's id")
    .option("--all", "all that --agent and --code leave")
    .option("--agent <name>", "with --all: of this agent")
    .option("--code <code>", "with --all: with this error")
    .option(
      "--resume",
      "on its journal: what succeeded is not done again; an approval, event, child or model turn that it failed on is asked again (default)",
    )
    .option(
      "--from <entry>",
      "one task: from this entry of its journal on, steps, model turns and waits are done again; effects and children are kept (pawl events <id> shows the entries)",
    )
    .option(
      "--from-scratch",
      "forget its journal: steps, model turns and effects are done again, under new keys",
    )
    .option("--json", "answer in JSON")
    .addHelpText(
      "after",
      "\nExample:\n  pawl dlq redrive --all --agent echo --code attempts_exhausted\n  pawl dlq redrive order-7 --from draft#1",
    )
    .action(
      async (
        id: string | undefined,
        options: Which & { all?: boolean; resume?: boolean; fromScratch?: boolean; from?: string },
        command: Command,
      ) => {
        const { all, resume, fromScratch = false, from, json = false } = options;
        if ((id === undefined) === !all) command.error("Give one task's id, or --all");
        if (resume && fromScratch)
          command.error("--resume and --from-scratch exclude each other: choose one");
        if (from !== undefined && (resume || fromScratch))
          command.error("--from excludes --resume and --from-scratch: choose one");
        if (from !== undefined && all)
          command.error("--from is of one task's journal: give its id, not --all");
        if (id !== undefined) checkTaskId(id);
        await using wired = await wire(config(), logger(json));
        const deps = { ...wired, lanesOf: await lanesKnown(agentsFolder()), actor: commandActor() };
        const ids = id === undefined ? await idsOf(deps, options) : [id];
        const how = { fromScratch, ...(from !== undefined && { from }) };
        const done = await redriveAll(deps, ids, how, id !== undefined, json);
        if (json) sayJson(done);
        else say(`redriven ${done.redriven.length} of ${ids.length}`);
        if (done.refused.length > 0) process.exitCode = 1;
      },
    );
}

function letterLines(task: Failed): string[] {
  const { id, agent, lane, error, lastError, attempts, executions, dispatches, input, raw } = task;
  // What a spent task failed with at last was thrown by its handler; the word for it has no stack of its own.
  const stack = stackLines(error.stack ? error : lastError);
  return [
    ...fieldLines([
      ["task", id],
      ["agent", `${agent}, lane ${lane}`],
      ["failed", time(task.updatedAt)],
      ["reason", `${error.code}: ${error.message}`],
    ]),
    ...stack,
    ...fieldLines([
      ["phase", error.phase],
      ["attempts", `${attempts} failures, ${executions} starts, ${dispatches} dispatches`],
      ["input", raw ? undefined : short(input)],
      ["to do", withDocs(`${errorKinds[error.code].remedy} (docs/errors.md#${error.code})`)],
      ["again", raw ? undefined : `pawl dlq redrive ${id}`],
    ]),
    ...(raw ? rawLines(raw) : []),
  ];
}

async function redriveAll(deps: Wired, ids: readonly string[], how: Redrive, isOne: boolean, json: boolean) {
  const redriven: string[] = [];
  const refused: { id: string; reason: string }[] = [];
  for (const id of ids) {
    try {
      await redrive(deps, id, how);
      redriven.push(id);
    } catch (error) {
      // Of many, one that somebody else has redriven meanwhile, or that can't be, does not stop the others.
      if (isOne || !isPawlError(error) || error.disposition === "retry") throw error;
      refused.push({ id, reason: messageOf(error) });
      if (!json) say(`  ${id}: ${messageOf(error)}`);
    }
    if (process.stderr.isTTY) process.stderr.write(`\r${redriven.length + refused.length} of ${ids.length} `);
  }
  return { redriven, refused };
}

/** All of them first: each that is redriven leaves the list that is being paged through. The oldest comes first. */
async function idsOf(deps: Wired, which: Which): Promise<string[]> {
  const ids: string[] = [];
  for await (const { id } of failed(deps, which)) ids.push(id);
  return ids.reverse();
}

async function* failed(deps: Wired, { agent, code }: Which): AsyncGenerator<Failed> {
  if (agent !== undefined)
    await checkAgents(
      [agent],
      agentsFolder(),
      async () => (await deps.store.list({ agent }, 1)).tasks.length > 0,
    );
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor; isFirst = false) {
    const page = await deps.store.list({ state: "failed", ...(agent && { agent }) }, PAGE, cursor);
    warnOf(deps.log, page.unreadable);
    for (const task of page.tasks)
      if (task.state === "failed" && (code ?? task.error.code) === task.error.code) yield task;
    cursor = page.cursor;
  }
}
