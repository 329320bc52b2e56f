import { configFrom } from "../../../functions/wiring/config.ts";
import { wire } from "../../../functions/wiring/wire.node.ts";
import { follow } from "../../../shared/dispatch/follow.ts";
import { submit } from "../../../shared/dispatch/submit.ts";
import { PawlError } from "../../../shared/errors/errors.ts";
import { acceptedInput } from "../../../shared/input.ts";
import { settingsFrom } from "../../../shared/settings/settings.ts";
import type { Env } from "../../../shared/settings/variable.ts";
import type { Task } from "../../../shared/task/document.ts";
import { checkInput } from "../../../shared/task/envelope.ts";
import type { JsonObject } from "../../../shared/values/json.ts";
import { loadAgent } from "../../agents.ts";
import { commandActor } from "../actor.ts";

/** A task, as `--submit` has it: hello='{"name": "Ada"}'. */
export interface FirstTask {
  readonly agent: string;
  readonly lanes: number;
  readonly input: JsonObject;
}

/** Checked before anything is started. */
export async function firstTask(given: string, folder: string): Promise<FirstTask> {
  const [, name = "", text = ""] = /^([^=]+)=(.*)$/s.exec(given) ?? [];
  if (!name)
    throw new PawlError(
      "usage",
      `--submit is ${given}; write the agent and its input: --submit hello='{"name": "Ada"}'`,
    );
  const agent = await loadAgent(name, folder);
  const input = checkInput(text, settingsFrom(process.env).inputLimit);
  const accepted = await acceptedInput(agent, input);
  if ("problem" in accepted) throw accepted.problem;
  return { agent: name, lanes: agent.limits.lanes, input };
}

/** Submits it to what dev has started, and says how it ended; undefined where dev is stopped before that. */
export async function submitFirst(
  { agent, lanes, input }: FirstTask,
  env: Env,
  signal: AbortSignal,
): Promise<Task | undefined> {
  await using deps = await wire(configFrom(env), () => {});
  const task = { agent, lanes, input, id: crypto.randomUUID() };
  const { id } = await submit({ ...deps, actor: commandActor() }, task);
  for await (const { kind } of follow(deps, id, signal))
    if (kind === "end") return (await deps.store.get(id))?.task;
  return undefined;
}
