import { type Command, Option } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { cancel } from "../../../shared/audit/operations.ts";
import { PawlError } from "../../../shared/errors/errors.ts";
import type { Deps } from "../../../shared/ports/deps.ts";
import type { Task } from "../../../shared/task/document.ts";
import { isFinal, states } from "../../../shared/task/table.ts";
import { changes } from "../../../shared/web/api/several.ts";
import { agentsFolder, lanesKnown } from "../../agents.ts";
import { commandActor } from "../actor.ts";
import { logger, say, sayJson } from "../output.ts";
import { matching, onEach, previewOf, sayPreview, type Which, withWhich } from "./several.ts";

interface Options extends Which {
  readonly all?: boolean;
  readonly yes?: boolean;
  readonly json?: boolean;
}

type Act = (id: string, options: Options, work: (deps: Deps) => Promise<Task>) => Promise<void>;

const HELP = `
--all says how many match, and which; with --yes they are cancelled, one after the other: killed, it can be called again. One with
an effect in doubt is left alone, because whether it happened would stay unknown.
Examples:
  pawl cancel order-7
  pawl cancel --all --agent echo --label team=docs
  pawl cancel --all --agent echo --label team=docs --yes`;

const OPEN = states.filter((state) => !isFinal({ state }) && state !== "in_doubt");

export function addCancel(program: Command, config: () => Config, act: Act): void {
  const command = program
    .command("cancel")
    .description("cancel a task, or all that match: at once, or, while it runs, within a heartbeat")
    .argument("[id]", "the task's id")
    .option("--all", "all that are not over, as far as the following let them through");
  withWhich(command, "with --all: ")
    .addOption(new Option("--state <state>", "with --all: in this state").choices(OPEN))
    .option("--yes", "with --all: cancel them; without it they are only counted")
    .option("--json", "answer in JSON")
    .addHelpText("after", HELP)
    .action(async (id: string | undefined, options: Options) => {
      const { all, yes, json = false, agent, owner, label, state } = options;
      if ((id === undefined) === !all) command.error("Give one task's id, or --all");
      if (id !== undefined && [agent, owner, label, state, yes].some((one) => one !== undefined))
        command.error("--agent, --owner, --label, --state and --yes go with --all");
      if (id !== undefined) return act(id, options, (deps) => cancel(deps, id));
      await using wired = await wire(config(), logger(json));
      const deps = { ...wired, lanesOf: await lanesKnown(agentsFolder()), actor: commandActor() };
      const tasks: Task[] = [];
      for await (const task of matching(wired, options, changes.cancel.isFor)) tasks.push(task);
      if (!yes) {
        if (json) sayJson(previewOf(tasks));
        else sayPreview(tasks, "--yes cancels them");
        return;
      }
      const ids = tasks.map((task) => task.id);
      const { done: cancelled, refused } = await onEach(ids, (one) => cancelUnlessInDoubt(deps, one), json);
      if (json) sayJson({ cancelled, refused });
      else say(`cancelled, or asked to stop, ${cancelled.length} of ${ids.length}`);
      if (refused.length > 0) process.exitCode = 1;
    });
}

/** It may have come in doubt since it was counted. */
async function cancelUnlessInDoubt(deps: Deps, id: string): Promise<Task> {
  if ((await deps.store.get(id))?.task.state === "in_doubt")
    throw new PawlError("illegal_transition", `An effect of it is in doubt: pawl resolve ${id}`);
  return cancel(deps, id);
}
