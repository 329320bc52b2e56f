import type { Stored } from "../ports/store.ts";
import type { Dispatched, Task } from "../task/document.ts";
import { isPawlError, messageOf } from "../task/errors.ts";
import { type Queue, streamName } from "../task/names.ts";
import { ORPHAN_AFTER, sweepAt } from "../task/sweep.ts";
import { apply } from "../task/transitions.ts";
import { type Deps, PATIENCE, pause, whilePatient } from "./deps.ts";
import { type Patience, publish } from "./publish.ts";
import { update } from "./write.ts";

export function queueOf(task: Pick<Task, "agent" | "lane">, deps: Deps): Queue {
  const { namespace, generation } = deps.settings;
  return { namespace, agent: task.agent, lane: task.lane, generation };
}

/** A scheduled task that is due: the state first, then the message. False when somebody else was faster. */
export async function dispatch(deps: Deps, stored: Stored, patience?: Patience): Promise<boolean> {
  const queue = queueOf(stored.task, deps);
  const due = (task: Task) => task.state === "scheduled" && task.dueAt <= deps.clock.now();
  const written = await update(
    deps,
    stored,
    (task, own) => (due(task) ? apply(task, { type: "dispatch", queue: streamName(queue) }, own) : undefined),
    whilePatient(deps, `Task ${stored.task.id}`),
  );
  if (written.kind === "moot") return false;
  const { task, revision } = written.stored;
  if (task.state !== "dispatched") return false;
  await publish(deps, { task: task as Dispatched, revision }, queue, msgIdOf(task), patience);
  return true;
}

/** A task whose dispatcher died between its write and its publish: published again, under the same Msg-Id. */
async function redispatch(deps: Deps, { task, revision }: Stored, patience: Patience): Promise<boolean> {
  if (task.state !== "dispatched") return false;
  const queue = queueOf(task, deps);
  if (await deps.bus.lookup(queue, task.id)) return false;
  const { stoppedBy } = await publish(deps, { task, revision }, queue, msgIdOf(task), patience);
  return stoppedBy === undefined;
}

/** A task whose wait is over without an answer: it goes on, and finds its deadline passed. */
async function wake(deps: Deps, stored: Stored, patience: Patience): Promise<boolean> {
  const queue = queueOf(stored.task, deps);
  const isDue = (task: Task) => task.state === "waiting" && (task.dueAt ?? Infinity) <= deps.clock.now();
  const written = await update(
    deps,
    stored,
    (task, own) => (isDue(task) ? apply(task, { type: "wake", queue: streamName(queue) }, own) : undefined),
    whilePatient(deps, `Task ${stored.task.id}`),
  );
  if (written.kind === "moot" || written.stored.task.state !== "dispatched") return false;
  const { task, revision } = written.stored;
  await publish(deps, { task: task as Dispatched, revision }, queue, msgIdOf(task), patience);
  return true;
}

/** A sweep tries once: the next one comes in a minute, and a queue that is missing must not hold up the others. */
const ONCE: Patience = { ms: 0, retryIn: 60_000 };
const PAGE = 100;

/**
 * Dispatches what is due of one agent, and what was left half dispatched. Two at once are harmless: the document lets
 * one of them through.
 */
export async function dispatchDue(
  deps: Deps,
  agent: string,
  stop?: AbortSignal,
  dispatchTimeout = ORPHAN_AFTER,
): Promise<number> {
  let dispatched = 0;
  const until = deps.clock.now();
  for (const [state, work] of [
    ["scheduled", dispatch],
    ["waiting", wake],
    ["dispatched", redispatch],
  ] as const) {
    // By pages: behind a hundred that only wait in their queue there may be one whose message is lost.
    for (let after = 0, page: Stored[] = []; after === 0 || page.length === PAGE; ) {
      page = await deps.store.due(agent, state, { after, until }, PAGE);
      for (const stored of page) {
        if (stop?.aborted) return dispatched;
        try {
          const isYoung = state === "dispatched" && until - stored.task.updatedAt < dispatchTimeout;
          if (!isYoung && (await work(deps, stored, ONCE))) dispatched++;
        } catch (error) {
          deps.log("warn", "dispatch.failed", { task: stored.task.id, reason: messageOf(error) });
        }
      }
      after = Math.max(1, ...page.map(({ task }) => sweepAt(task) ?? 0));
    }
  }
  return dispatched;
}

const OPERATION: Readonly<Record<string, string>> = {
  wake: "approval",
  resolve: "resolve",
  redrive: "redrive",
};

/** Names the operation, so that a dispatch is the same message however often it is published. */
export function msgIdOf({ id, dispatches, history }: Pick<Task, "id" | "dispatches" | "history">): string {
  if (dispatches === 1) return `submit:${id}`;
  const last = history.findLast(
    ({ event }) => event === "dispatch" || event === "requeue" || event in OPERATION,
  );
  return `${OPERATION[last?.event ?? ""] ?? "retry"}:${id}:${dispatches}`;
}

/** Makes sure of a queue; a cluster that is choosing its leader gets time to. */
export async function ensureQueue(
  deps: Deps,
  queue: Queue,
  how: "correct" | "create",
): Promise<readonly string[]> {
  const until = deps.clock.monotonic() + PATIENCE;
  for (let failures = 1; ; failures++) {
    try {
      return await deps.bus.ensure(queue, how);
    } catch (error) {
      if (!isPawlError(error, "bus_unavailable") || deps.clock.monotonic() > until) throw error;
      await pause(deps, failures);
    }
  }
}
