import { isPawlError, messageOf } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import type { Task } from "../task/document.ts";
import { approvalSignal } from "../task/signals.ts";
import type { Json, JsonObject } from "../values/json.ts";

/** What a test says of the world outside. */
interface Outside {
  readonly approvals?: Readonly<Record<string, boolean | object>>;
  readonly events?: Readonly<Record<string, Json>>;
  readonly children?: (agent: string, input: JsonObject) => Json | Promise<Json>;
}

/** What people and events answer to what a task waits for. */
export function answerTo(waitingFor: string, { approvals = {}, events = {} }: Outside): Json | undefined {
  const tool = /^approval:.*\/([\w-]+)\/[^/]*@[0-9a-f]{32}$/.exec(waitingFor)?.[1];
  const name = Object.keys(approvals).find((one) => approvalSignal(one) === waitingFor || one === tool);
  const answer = name === undefined ? undefined : approvals[name];
  if (answer === undefined) return events[waitingFor];
  return typeof answer === "boolean" ? { approved: answer, by: "test" } : ({ ...answer } as JsonObject);
}

/** The child that is waited for ends as the test says. */
export async function endChild({ store }: Deps, waitingFor: string, { children }: Outside): Promise<boolean> {
  const id = /^child:(.*)$/.exec(waitingFor)?.[1];
  const found = id === undefined ? undefined : await store.get(id);
  if (!found || !children) return false;
  const { task } = found;
  const ended = await endOf(() => children(task.agent, task.input));
  await store.replace({ ...task, ...ended, expiresAt: 0 } as Task, found.revision);
  return true;
}

async function endOf(
  run: () => Json | Promise<Json>,
): Promise<Pick<Task, "state"> & Record<string, unknown>> {
  try {
    return { state: "completed", result: await run() };
  } catch (error) {
    const code = isPawlError(error) ? error.code : "handler_failed";
    return { state: "failed", error: { code, message: messageOf(error), phase: "handler" } };
  }
}
