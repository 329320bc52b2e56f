import type { Deps } from "../ports/deps.ts";
import type { Stored } from "../ports/store.ts";
import { update } from "../retry/guarded-write.ts";
import { whilePatient, withPatience } from "../retry/patience.ts";
import type { Dispatched, Running, Task } from "../task/document.ts";
import { laneOf, type Queue, queueNamed, streamName } from "../task/names.ts";
import { apply } from "../task/transitions.ts";
import { type Patience, publish } from "./publish.ts";

/** A lane's queue; with an id, that of a task. */
type Placed = Pick<Task, "agent" | "lane"> & Partial<Pick<Task, "id" | "orderingKey" | "meta">>;

/** Where messages go. A task whose agent no longer has its lane goes where a submit would put it now. */
export function queueOf(deps: Deps, { agent, lane, id, orderingKey, meta }: Placed): Queue {
  const { namespace, generation } = deps.settings;
  const lanes = deps.lanesOf?.(agent);
  const key = orderingKey ?? meta?.msgId ?? id;
  const isGone = key !== undefined && lanes !== undefined && lane >= lanes;
  return { namespace, agent, lane: isGone ? laneOf(key, lanes) : lane, generation };
}

/** Where a task's message is, by its document: perhaps in a lane, or a generation, that is no more. */
export function carrierOf(deps: Deps, task: Dispatched | Running): Queue {
  return queueNamed(task.queue, deps.settings.namespace) ?? queueOf(deps, task);
}

/** A scheduled task that is due: the state first, then the message. False when somebody else was faster. */
export async function dispatch(deps: Deps, stored: Stored, patience?: Patience): Promise<boolean> {
  const queue = queueOf(deps, stored.task);
  const due = (task: Task) => task.state === "scheduled" && task.dueAt <= deps.clock.now();
  const written = await update(
    deps,
    stored,
    (task, own) => (due(task) ? apply(task, { type: "dispatch", queue: streamName(queue) }, own) : undefined),
    whilePatient(deps, `Task ${stored.task.id}`, { agent: stored.task.agent, phase: "dispatched_write" }),
  );
  if (written.kind === "moot") return false;
  const { task, revision } = written.stored;
  if (task.state !== "dispatched") return false;
  await publish(deps, { task: task as Dispatched, revision }, queue, msgIdOf(task), patience);
  return true;
}

const OPERATION: Readonly<Record<string, string>> = {
  wake: "approval",
  resolve: "resolve",
  redrive: "redrive",
};

/** Names the operation, so that a dispatch is the same message however often it is published. */
export function msgIdOf({ id, dispatches, history, meta }: Task): string {
  if (dispatches === 1) return meta?.msgId ?? `submit:${id}`;
  const last = history.findLast(
    ({ event }) => event === "dispatch" || event === "requeue" || event in OPERATION,
  );
  return `${OPERATION[last?.event ?? ""] ?? "retry"}:${id}:${dispatches}`;
}

/** Makes sure of a queue. */
export function ensureQueue(deps: Deps, queue: Queue, how: "correct" | "create"): Promise<readonly string[]> {
  return withPatience(deps, "bus_unavailable", () => deps.bus.ensure(queue, how));
}
