import type { Command } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { accept, type Resolution, resolve, signal } from "../../../shared/audit/operations.ts";
import type { Deps } from "../../../shared/ports/deps.ts";
import type { Task } from "../../../shared/task/document.ts";
import { checkTaskId } from "../../../shared/task/names.ts";
import { approvalSignal, isEventName } from "../../../shared/task/signals.ts";
import { type Json, parseJson } from "../../../shared/values/json.ts";
import { agentsFolder, lanesKnown } from "../../agents.ts";
import { commandActor } from "../actor.ts";
import { logger, say, sayJson } from "../output.ts";
import { addCancel } from "./cancel.ts";

interface Options {
  readonly json?: boolean;
}

interface Early {
  readonly early?: boolean;
}

const EARLY = "keep it for a wait that is still to come; otherwise a name that nobody waits for is refused";

/** Commands by which a person answers a task. */
export function addOperate(program: Command, config: () => Config): void {
  const act = async (id: string, { json = false }: Options, work: (deps: Deps) => Promise<Task>) => {
    checkTaskId(id);
    await using deps = await wire(config(), logger(json));
    const lanesOf = await lanesKnown(agentsFolder());
    const task = await work({ ...deps, lanesOf, actor: commandActor() });
    if (json) sayJson({ id, state: task.state });
    else say(`${id} is ${task.state}`);
  };

  for (const [name, approved] of [
    ["approve", true],
    ["reject", false],
  ] as const) {
    program
      .command(name)
      .description(`${name} what a task asks approval for; a task that waits goes on`)
      .argument("<id>", "the task's id")
      .argument("<name>", "the approval's name")
      .option("--by <who>", "who says so", commandActor().name)
      .option("--note <text>", "why")
      .option("--early", EARLY)
      .option("--json", "answer in JSON")
      .addHelpText("after", `\nExample:\n  pawl ${name} notes-7 publish --note "checked by hand"`)
      .action((id: string, approval: string, options: Options & Early & { by: string; note?: string }) => {
        const { by, note, early = false } = options;
        const value = { approved, by, ...(note !== undefined && { note }) };
        return act(id, options, (deps) =>
          signal(deps, id, approvalSignal(approval), value, { ifAsked: !early }),
        );
      });
  }

  addCancel(program, config, act);

  program
    .command("accept")
    .description("accept a document or journal that something other than Pawl changed: it is sealed as it is")
    .argument("<id>", "the task's id")
    .option("--json", "answer in JSON")
    .addHelpText("after", "\nExample:\n  pawl accept order-7")
    .action(async (id: string, { json = false }: Options) => {
      checkTaskId(id);
      await using deps = await wire(config(), logger(json));
      const accepted = await accept({ ...deps, actor: commandActor() }, id);
      const what = Object.entries(accepted).flatMap(([name, is]) => (is ? [name] : []));
      if (json) sayJson({ id, ...accepted });
      else
        say(what.length > 0 ? `${id}: sealed its ${what.join(" and ")} again` : `${id} is as Pawl wrote it`);
    });

  program
    .command("signal")
    .description("send an event that a task waits for: the task goes on with it")
    .argument("<id>", "the task's id")
    .argument("<event>", "the event's name")
    .argument("[json]", "its value", "null")
    .option("--early", EARLY)
    .option("--json", "answer in JSON")
    .addHelpText("after", `\nExample:\n  pawl signal order-7 paid '{"amount": 3}'`)
    .action((id: string, event: string, text: string, options: Options & Early, command: Command) => {
      if (!isEventName(event)) command.error(`${event}: use pawl approve, reject or resolve for this`);
      const value: Json = parseJson(text, "The event's value");
      return act(id, options, (deps) => signal(deps, id, event, value, { ifAsked: !options.early }));
    });

  program
    .command("resolve")
    .description("say what became of an effect in doubt; the task goes on from there, or is given up")
    .argument("<id>", "the task's id")
    .option("--happened", "it happened")
    .option("--receipt <json>", "with --happened: what the effect would have returned", "null")
    .option("--did-not", "it did not happen: it is run again")
    .option("--fail", "give the task up")
    .option("--json", "answer in JSON")
    .addHelpText("after", `\nExample:\n  pawl resolve notes-7 --happened --receipt '{"url": "https://…"}'`)
    .action(
      (
        id: string,
        options: Options & { happened?: boolean; didNot?: boolean; fail?: boolean; receipt: string },
        command: Command,
      ) => {
        const { happened, didNot, fail, receipt } = options;
        if ([happened, didNot, fail].filter(Boolean).length !== 1)
          command.error("Choose one of --happened, --did-not and --fail");
        const resolution: Resolution = fail
          ? { fail: true }
          : happened
            ? { happened: true, receipt: parseJson(receipt, "The receipt") }
            : { happened: false };
        return act(id, options, (deps) => resolve(deps, id, resolution));
      },
    );
}
