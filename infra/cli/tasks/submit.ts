import type { Command } from "commander";
import type { Config } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { ensureQueue, queueOf } from "../../../shared/dispatch/dispatch.ts";
import { submit } from "../../../shared/dispatch/submit.ts";
import { isPawlError, PawlError } from "../../../shared/errors/errors.ts";
import { acceptedInput } from "../../../shared/input.ts";
import { readVariable } from "../../../shared/settings/variables.ts";
import { checkInput } from "../../../shared/task/envelope.ts";
import { checkTaskId, isMadeUp, laneOf } from "../../../shared/task/names.ts";
import { plainTraceparent } from "../../../shared/values/traceparent.ts";
import { agentsFolder, loadAgent } from "../../agents.ts";
import { commandActor } from "../actor.ts";
import { logger, say, sayJson } from "../output.ts";
import { labelsOf, timeOf } from "./given.ts";

interface Options {
  readonly id?: string;
  readonly orderingKey?: string;
  readonly msgId?: string;
  readonly at?: string;
  readonly label?: readonly string[];
  readonly traceparent?: string;
  readonly json?: boolean;
}

export function addSubmit(program: Command, config: () => Config): void {
  program
    .command("submit")
    .description("submit a task; submitting the same id again does not start it twice")
    .argument("<agent>", "name of a file in the agents folder")
    .argument("<json>", "the input: a JSON object, or - to read it from standard input")
    .option("--id <id>", "names the work, 1 to 128 of A-Z a-z 0-9 _ - (generated when left out)")
    .option("--ordering-key <key>", "tasks of one key run in order, in one lane")
    .option("--msg-id <id>", "Nats-Msg-Id instead of submit:<id>")
    .option("--at <time>", "not before then: 2026-12-24T18:00:00Z (or +01:00), or from now on: 90m, 2d")
    .option(
      "--label <name=value>",
      "a label, for lists and webhooks; may be repeated",
      (one, all: string[] = []) => [...all, one],
    )
    .option("--traceparent <header>", "the trace that it belongs to (TRACEPARENT in the environment)")
    .option("--json", "answer in JSON")
    .addHelpText(
      "after",
      `\nExample:\n  pawl submit echo '{"text": "hello"}' --id hello-1\n  pawl submit echo '{"text": "later"}' --at 2h --label team=a`,
    )
    .action(async (name: string, text: string, options: Options) => {
      const { settings, ...rest } = config();
      const agent = await loadAgent(name, agentsFolder());
      const { orderingKey, msgId } = options;
      const id = checkTaskId(options.id ?? crypto.randomUUID());
      // Agents make these up where they can't say so: one that is in use would not be known for taken.
      if (settings.isolation !== "shared" && isMadeUp(id))
        throw new PawlError(
          "task_id_invalid",
          `Task id ${id} has the form of ids that Pawl makes up for children and strays: choose another`,
        );
      const at = options.at === undefined ? undefined : timeOf(options.at);
      const labels = labelsOf(options.label ?? []);
      const traceparent = traceOf(options.traceparent);
      const input = readInput(text === "-" ? await standardInput() : text, settings.inputLimit);
      const accepted = await acceptedInput(agent, input);
      if ("problem" in accepted) throw accepted.problem;
      const { lanes } = agent.limits;
      await using deps = await wire({ settings, ...rest }, logger(options.json ?? false));
      await ensureQueue(
        deps,
        queueOf(deps, { agent: name, lane: laneOf(orderingKey ?? msgId ?? id, lanes) }),
        "create",
      );
      const given = {
        ...(orderingKey !== undefined && { orderingKey }),
        ...(msgId !== undefined && { msgId }),
        ...(at !== undefined && { at }),
        ...(labels && { meta: { labels } }),
        ...(traceparent !== undefined && { traceparent }),
      };
      const result = await submit(
        { ...deps, actor: commandActor() },
        { agent: name, lanes, input, id, ...given },
      );
      if (options.json) sayJson(result);
      else if (result.kind === "accepted") {
        say(
          `accepted ${result.id}${result.state === "scheduled" && at ? `, for ${new Date(at).toISOString()}` : ""}`,
        );
        say(`  see: npx pawl status ${result.id.startsWith("-") ? "-- " : ""}${result.id}`);
      } else {
        say(`already submitted: ${result.id} is ${result.state} (stopped by the ${result.stoppedBy})`);
        if (result.state === "failed") say("  a failed task is not started again by this: pawl dlq redrive");
      }
    });
}

/** What somebody types is meant; what happens to be in the environment may be anything. */
function traceOf(given: string | undefined): string | undefined {
  if (given === undefined) return readVariable(process.env, "TRACEPARENT");
  if (plainTraceparent(given) !== undefined) return given;
  throw new PawlError(
    "usage",
    `--traceparent is ${JSON.stringify(given.slice(0, 100))}; it should be 00-<trace>-<span>-<flags>, as https://www.w3.org/TR/trace-context has it`,
  );
}

async function standardInput(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

/** What the shell made of an input is not always what was typed. */
function readInput(text: string, limit: number) {
  try {
    return checkInput(text, limit);
  } catch (error) {
    if (!isPawlError(error, "input_invalid") || !/not JSON/.test(error.message)) throw error;
    const shown = text.length > 80 ? `${text.slice(0, 80)}…` : text;
    throw new PawlError(
      "input_invalid",
      `${error.message}. It arrived as ${shown}: quote it for the shell, as '{"text": "hello"}'`,
    );
  }
}
