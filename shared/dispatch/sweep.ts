import { isPawlError, messageOf } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import type { Notify } from "../ports/notify.ts";
import type { DuePage, Stored } from "../ports/store.ts";
import { evidence } from "../reconcile/books/evidence.ts";
import { isOverdue } from "../reconcile/look/examine.ts";
import { update } from "../retry/guarded-write.ts";
import { whilePatient } from "../retry/patience.ts";
import type { Dispatched, Running, Task } from "../task/document.ts";
import { ORPHAN_AFTER, type SweptState, sweepAt } from "../task/due.ts";
import { type Queue, streamName } from "../task/names.ts";
import { apply } from "../task/transitions.ts";
import { carrierOf, dispatch, msgIdOf, queueOf } from "./dispatch.ts";
import { notifyPeople } from "./notify.ts";
import { type Patience, publish } from "./publish.ts";
import { inspectCalmly, isStranded } from "./queues.ts";

/** A sweep tries once: the next one comes in a minute, and a queue that is missing must not hold up the others. */
const ONCE: Patience = { ms: 0, retryIn: 60_000 };
const PAGE = 100;
/** The first page of all states at once: there is seldom more, and together they are to be held by a Worker. */
const FIRST_PAGE = 10;
/** What is left is the next sweep's: an invocation has an end. */
const MOST_A_SWEEP = 5_000;
const AT_ONCE = 8;

export interface SweepLimits {
  readonly lanes?: number;
  readonly dispatchTimeout?: number;
  readonly most?: number;
  /** Told of every task that was dispatched, as it was before. */
  readonly onDispatched?: (task: Task) => void;
}

/**
 * Looks after the tasks of one agent that nobody holds: those that are due are dispatched, those whose wait is over go
 * on, those whose message is gone get another, and people are told what they have to hear. Two at once are harmless:
 * the document lets one of them through.
 */
export async function dispatchDue(
  deps: Deps,
  agent: string,
  stop?: AbortSignal,
  { lanes = 1, dispatchTimeout = ORPHAN_AFTER, most = MOST_A_SWEEP, onDispatched }: SweepLimits = {},
): Promise<number> {
  const { frontOf, serverNow } = queueFronts(deps);
  // By the lane that has come furthest; each task is then measured by its own.
  const all = Array.from({ length: lanes }, (_, lane) => frontOf(queueOf(deps, { agent, lane })));
  const front = Math.max(0, ...(await Promise.all(all)));
  // A clock that is ahead, ours or the server's, must start nothing before its time.
  const now = Math.min(deps.clock.now(), serverNow());
  const isOpen = openOf(deps);
  /** What is due is dispatched; what was due long ago only if nothing shows that it is done. */
  const isToDispatch = async (stored: Stored) => !isOverdue(stored.task, now) || isOpen(stored);
  const orphans = Math.min(front, now - dispatchTimeout) + ORPHAN_AFTER;
  const isAtFront = async (task: Dispatched | Running) =>
    now - task.updatedAt >= dispatchTimeout && task.updatedAt <= (await frontOf(carrierOf(deps, task)));
  let isAway = false;
  const notify: Notify = async (notice) => {
    try {
      await deps.notify?.(notice);
    } catch (error) {
      isAway ||= (error as Error)?.name === "TimeoutError";
      throw error;
    }
  };
  // A receiver that does not answer is not waited for again and again: the rest is told by the next sweep.
  const told = async (stored: Stored) =>
    deps.notify !== undefined && !isAway && (await notifyPeople({ ...deps, notify }, stored));
  const dispatched = (isDispatched: boolean, { task }: Stored) => {
    if (isDispatched) onDispatched?.(task);
    return isDispatched;
  };
  const works: readonly [SweptState, number, (stored: Stored) => Promise<boolean>][] = [
    [
      "scheduled",
      now,
      async (stored) =>
        (await isToDispatch(stored)) && dispatched(await dispatch(deps, stored, ONCE), stored),
    ],
    [
      "waiting",
      now,
      async (stored) => {
        const isTold = await told(stored);
        return ((await isToDispatch(stored)) && dispatched(await wake(deps, stored), stored)) || isTold;
      },
    ],
    ["in_doubt", now, told],
    ["failed", now, told],
    ["dispatched", orphans, async (stored) => dispatched(await restore(deps, stored, isOpen), stored)],
    ["running", orphans, async (stored) => dispatched(await restore(deps, stored, isOpen), stored)],
  ];
  /** Of the tasks with a message, only those at the front of their queue cost a look. */
  const isWorth = async ({ task }: Stored) =>
    (task.state !== "dispatched" && task.state !== "running") || (await isAtFront(task));
  let looked = 0;
  let changed = 0;
  const wanted = works.filter(
    ([state]) => deps.notify !== undefined || (state !== "in_doubt" && state !== "failed"),
  );
  const firsts: Promise<DuePage>[] = [];
  for (const [state, until] of wanted) {
    const look = () => deps.store.due(agent, state, { after: 0, until }, FIRST_PAGE);
    // A dispatch's entries lead to running tasks too: what leads nowhere of them is removed by the first that reads them.
    // A function has little of it, and waits for nothing.
    const before = firsts[wanted.findIndex(([one]) => one === "dispatched")];
    firsts.push(state === "running" && before && !deps.invocation ? before.then(look) : look());
  }
  // Those behind one that fails are not looked at any more.
  for (const one of firsts) one.catch(() => {});
  for (const [i, [state, until, work]] of wanted.entries()) {
    // By pages: behind a hundred that only wait in their queue there may be one whose message is lost.
    const seen = new Set<string>();
    for (let after = 0, isLeft = true; isLeft; ) {
      const first = after === 0 ? firsts[i] : undefined;
      const page = await (first ?? deps.store.due(agent, state, { after, until }, PAGE));
      isLeft = page.isCut;
      const fresh = page.tasks.filter(({ task }) => !seen.has(task.id));
      for (const { task } of fresh) seen.add(task.id);
      await inParallel(fresh, async (stored) => {
        if (stop?.aborted || !(await isWorth(stored)) || ++looked > most) return;
        try {
          if (await work(stored)) changed++;
        } catch (error) {
          deps.log("warn", "dispatch.failed", { task: stored.task.id, reason: messageOf(error) });
        }
      });
      if (stop?.aborted) return changed;
      if (looked > most) {
        deps.log("warn", "sweep.cut", { agent, state, looked: most });
        return changed;
      }
      // More may be due at the page's last moment than fit it: that moment is asked for again while it brings new ones.
      const last = Math.max(2, ...page.tasks.map(({ task }) => sweepAt(task) ?? 0));
      after = fresh.length > 0 ? last - 1 : last;
    }
  }
  return changed;
}

/**
 * How far each queue has come: when its oldest message was stored, or now if it is empty. A task that was dispatched
 * later is not looked for, its message is further back; so a long queue costs a sweep nothing. Not so where messages
 * lie that nobody will deliver any more: the oldest of them says nothing.
 */
function queueFronts(deps: Deps): { frontOf: (queue: Queue) => Promise<number>; serverNow: () => number } {
  const now = deps.clock.now();
  const asked = new Map<string, Promise<number>>();
  let serverNow = Number.POSITIVE_INFINITY;
  const ask = async (queue: Queue) => {
    try {
      const info = await inspectCalmly(deps, queue);
      serverNow = Math.min(serverNow, info.now);
      return isStranded(info) ? now : (info.oldestAt ?? now);
    } catch (error) {
      // Of an agent that never ran.
      if (isPawlError(error, "queue_gone")) return now;
      // A lane whose leader is away, or that we may not look at: nobody may take its messages for lost, so this sweep does
      // not look for them.
      deps.log("warn", "queue.unseen", { queue: streamName(queue), reason: messageOf(error) });
      return 0;
    }
  };
  const frontOf = (queue: Queue) => {
    const front = asked.get(streamName(queue)) ?? ask(queue);
    asked.set(streamName(queue), front);
    return front;
  };
  return { frontOf, serverNow: () => serverNow };
}

/** Whether a task that has no message is really open: a task that some evidence shows as done is left to a person. */
function openOf(deps: Deps): (stored: Stored) => Promise<boolean> {
  // Who can't read the books leaves it to who can.
  if (deps.store.isPart) return async () => false;
  const whyOver = evidence(deps);
  return async ({ task }) => {
    const why = await whyOver(task);
    if (why) deps.log("error", "task.rolled-back", { task: task.id, reason: why });
    return why === undefined;
  };
}

/**
 * Looks after one task whose message somebody has just let go of: another may have been published by hand in its place,
 * and settled. Without a message only a sweep would find the task, a minute or two later. One that is held is its
 * holder's, who comes here when it loses it.
 */
export async function rescue(deps: Deps, id: string): Promise<void> {
  try {
    const stored = await deps.store.get(id);
    if (!stored) return;
    const isHeld = stored.task.state === "running" && (await deps.bus.isHeld(stored.task));
    if (!isHeld && (await restore(deps, stored, openOf(deps))))
      deps.log("warn", "message.restored", { task: id });
  } catch (error) {
    // Left to the sweep.
    deps.log("warn", "dispatch.failed", { task: id, reason: messageOf(error) });
  }
}

/** A task whose message is gone, or was never published. */
async function restore(
  deps: Deps,
  stored: Stored,
  isOpen: (stored: Stored) => Promise<boolean>,
): Promise<boolean> {
  const { task, revision } = stored;
  if (task.state !== "dispatched" && task.state !== "running") return false;
  if ((await hasMessage(deps, task)) || !(await isOpen(stored))) return false;
  if (task.state === "dispatched" && task.seq === undefined) {
    // The dispatcher died between the write and the publish: the same message, where it was to go, under the same Msg-Id.
    const isSent = await republish(deps, { task, revision });
    if (isSent) deps.meter.count("requeued", { agent: task.agent });
    return isSent;
  }
  const queue = queueOf(deps, task);
  const isSame = (other: Task) =>
    other.state === task.state && (other as Running).seq === task.seq && other.fence === task.fence;
  const written = await update(
    deps,
    stored,
    (other, own) =>
      isSame(other) ? apply(other, { type: "requeue", queue: streamName(queue) }, own) : undefined,
    whilePatient(deps, `Task ${task.id}`),
  );
  if (written.kind === "moot" || written.stored.task.state !== "dispatched") return false;
  deps.meter.count("requeued", { agent: task.agent });
  await send(deps, written.stored);
  return true;
}

/** Under its own Msg-Id; or under the next, where that one is still remembered though its message is gone. */
async function republish(deps: Deps, stored: Stored & { task: Dispatched }): Promise<boolean> {
  const { task } = stored;
  try {
    const patience = { ...ONCE, retryIn: 0 };
    const sent = await publish(deps, stored, carrierOf(deps, task), msgIdOf(task), patience);
    return sent.stoppedBy === undefined;
  } catch (error) {
    if (!isPawlError(error, "msg_id_taken")) throw error;
    // The publish has taken it back.
    const now = await deps.store.get(task.id);
    return now !== undefined && (await dispatch(deps, now, ONCE));
  }
}

/** In the queue that the document names: one that is no longer published to is drained, not forgotten. */
export async function hasMessage(deps: Deps, task: Dispatched | Running): Promise<boolean> {
  const named = carrierOf(deps, task);
  try {
    return (await deps.bus.lookup(named, task.id)) !== undefined;
  } catch (error) {
    const isOld = streamName(named) !== streamName(queueOf(deps, task));
    // Drained and deleted.
    if (isOld && isPawlError(error, "queue_gone")) return false;
    throw error;
  }
}

/** A task whose wait is over without an answer: it goes on, and finds its deadline passed. */
async function wake(deps: Deps, stored: Stored): Promise<boolean> {
  const queue = streamName(queueOf(deps, stored.task));
  const isDue = (task: Task) => task.state === "waiting" && (task.dueAt ?? Infinity) <= deps.clock.now();
  const written = await update(
    deps,
    stored,
    (task, own) => (isDue(task) ? apply(task, { type: "wake", queue }, own) : undefined),
    whilePatient(deps, `Task ${stored.task.id}`),
  );
  if (written.kind === "moot" || written.stored.task.state !== "dispatched") return false;
  await send(deps, written.stored);
  return true;
}

async function send(deps: Deps, { task, revision }: Stored): Promise<void> {
  const dispatched = { task: task as Dispatched, revision };
  await publish(deps, dispatched, queueOf(deps, task), msgIdOf(task), ONCE);
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> {
  const left = items.values();
  const worker = async () => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
