import type { Stored } from "../ports/store.ts";
import type { Dispatched, Task } from "../task/document.ts";
import { messageOf } from "../task/errors.ts";
import { type Queue, streamName } from "../task/names.ts";
import { apply } from "../task/transitions.ts";
import { type Deps, patience } from "./deps.ts";
import { publish } from "./publish.ts";
import { update } from "./write.ts";

export function queueOf(task: Pick<Task, "agent" | "lane">, deps: Deps): Queue {
  const { namespace, generation } = deps.settings;
  return { namespace, agent: task.agent, lane: task.lane, generation };
}

/** A scheduled task that is due: the state first, then the message. False when somebody else was faster. */
export async function dispatch(deps: Deps, stored: Stored): Promise<boolean> {
  const queue = queueOf(stored.task, deps);
  const due = (task: Task) => task.state === "scheduled" && task.dueAt <= deps.clock.now();
  const written = await update(
    deps,
    stored,
    (task, own) => (due(task) ? apply(task, { type: "dispatch", queue: streamName(queue) }, own) : undefined),
    patience(deps, `Task ${stored.task.id}`),
  );
  if (written.kind === "moot") return false;
  const { task, revision } = written.stored;
  if (task.state !== "dispatched") return false;
  await publish(deps, { task: task as Dispatched, revision }, queue, msgIdOf(task));
  return true;
}

/** A task whose dispatcher died between its write and its publish: published again, under the same Msg-Id. */
async function redispatch(deps: Deps, { task, revision }: Stored): Promise<boolean> {
  if (task.state !== "dispatched") return false;
  const queue = queueOf(task, deps);
  if (await deps.bus.lookup(queue, task.id)) return false;
  const { stoppedBy } = await publish(deps, { task, revision }, queue, msgIdOf(task));
  return stoppedBy === undefined;
}

/**
 * Dispatches what is due of one agent, and what was left half dispatched. Two at once are harmless: the document lets
 * one of them through.
 */
export async function dispatchDue(
  deps: Deps,
  agent: string,
  stop?: AbortSignal,
  limit = 100,
): Promise<number> {
  let dispatched = 0;
  for (const [state, work] of [
    ["scheduled", dispatch],
    ["dispatched", redispatch],
  ] as const) {
    for (const stored of await deps.store.due(agent, state, deps.clock.now(), limit)) {
      if (stop?.aborted) return dispatched;
      try {
        if (await work(deps, stored)) dispatched++;
      } catch (error) {
        deps.log("warn", "dispatch.failed", { task: stored.task.id, reason: messageOf(error) });
      }
    }
  }
  return dispatched;
}

/** Names the operation, so that a dispatch is the same message however often it is published. */
export function msgIdOf(task: Pick<Task, "id" | "dispatches">): string {
  return task.dispatches === 1 ? `submit:${task.id}` : `retry:${task.id}:${task.dispatches}`;
}
