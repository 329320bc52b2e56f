import type { Command } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { redrive } from "../../../shared/audit/operations.ts";
import { errorKinds, PawlError } from "../../../shared/errors/errors.ts";
import type { Failed, Task } from "../../../shared/task/document.ts";
import { checkTaskId } from "../../../shared/task/names.ts";
import { agentsFolder, lanesKnown } from "../../agents.ts";
import { withDocs } from "../../project.ts";
import { commandActor } from "../actor.ts";
import { logger, say, sayJson } from "../output.ts";
import { rawLines, rawText } from "../raw.ts";
import { matching, onEach, previewOf, sayPreview, type Which, withWhich } from "./several.ts";
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
import { row } from "./tasks.ts";

interface Options extends Which {
  readonly json?: boolean;
}

/** Dead letters: what could not be done, why, and how to try it again. */
export function addDlq(program: Command, config: () => Config): void {
  const dlq = program.command("dlq").description("dead letters: tasks that failed");

  withWhich(dlq.command("ls").description("list them"))
    .option("--code <code>", "with this error, such as attempts_exhausted")
    .option("--json", "answer in JSON lines")
    .addHelpText("after", "\nExample:\n  pawl dlq ls --code budget_exceeded")
    .action(async (which: Options) => {
      await using deps = await wire(config(), logger(which.json ?? false));
      let count = 0;
      for await (const task of matching(deps, { ...which, state: "failed" })) {
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

  const again = dlq
    .command("redrive")
    .description("try them again: one by its id, or all; interrupted, it can be repeated")
    .argument("[id]", "the task's id")
    .option("--all", "all that the following let through");
  withWhich(again, "with --all: ")
    .option("--dry-run", "with --all: only say how many match, and which")
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
        options: Options & {
          all?: boolean;
          dryRun?: boolean;
          resume?: boolean;
          fromScratch?: boolean;
          from?: string;
        },
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
        if (options.dryRun && !all) command.error("--dry-run goes with --all");
        if (id !== undefined) checkTaskId(id);
        await using wired = await wire(config(), logger(json));
        const deps = { ...wired, lanesOf: await lanesKnown(agentsFolder()), actor: commandActor() };
        const how = { fromScratch, ...(from !== undefined && { from }) };
        if (id !== undefined) {
          await redrive(deps, id, how);
          if (json) sayJson({ redriven: [id], refused: [] });
          else say("redriven 1 of 1");
          return;
        }
        // All of them first: each that is redriven leaves the list that is being paged through.
        const tasks: Task[] = [];
        for await (const task of matching(wired, { ...options, state: "failed" })) tasks.push(task);
        if (options.dryRun) {
          if (json) sayJson(previewOf(tasks));
          else sayPreview(tasks, "without --dry-run they are redriven");
          return;
        }
        // The oldest comes first.
        const ids = tasks.map((task) => task.id).reverse();
        const { done: redriven, refused } = await onEach(ids, (one) => redrive(deps, one, how), json);
        if (json) sayJson({ redriven, refused });
        else say(`redriven ${redriven.length} of ${ids.length}`);
        if (refused.length > 0) process.exitCode = 1;
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
