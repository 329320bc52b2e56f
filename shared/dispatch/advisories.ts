import { isPawlError, isUnsound, messageOf, PawlError } from "../errors/errors.ts";
import type { Reached } from "../journal/entries.ts";
import { countSpent, journalReached } from "../journal/journal.ts";
import type { Advisory, KeptMessage } from "../ports/bus.ts";
import { type Deps, expiryOf, mark } from "../ports/deps.ts";
import type { Stored } from "../ports/store.ts";
import { create, readThrough, update } from "../retry/guarded-write.ts";
import type { Guard } from "../retry/guards.ts";
import { whilePatient } from "../retry/patience.ts";
import { deadLetter } from "../task/create.ts";
import { isCarrier, surplusAs } from "../task/decide.ts";
import type { Task, TaskFailure } from "../task/document.ts";
import { type Queue, queueNamed } from "../task/names.ts";
import { isSettled } from "../task/settled.ts";
import { apply } from "../task/transitions.ts";
import { type Arrived, arrive, type ReadMessage } from "./arrive.ts";
import { isApart, keepConflict, keepPoison, keepUnsound } from "./dead-letters.ts";

const MOST = 500;

/**
 * Messages that JetStream has given up on lie in their queue for ever, and only an advisory says so. Each becomes a dead
 * letter; only what a document explains is deleted then. Dead at any point, the next run finds the advisory again.
 */
export async function buryGivenUp(deps: Deps, stop: AbortSignal): Promise<number> {
  let buried = 0;
  for (const advisory of await deps.bus.advisories(MOST)) {
    if (stop.aborted) break;
    try {
      const became = await bury(deps, advisory);
      if (became === "buried") buried++;
      if (became !== "held") await deps.bus.forgetAdvisory(advisory);
    } catch (error) {
      const { queue, seq } = advisory;
      deps.log("warn", "advisory.failed", { queue, seq, reason: messageOf(error) });
    }
  }
  return buried;
}

/** "held": a server that was killed forgot that it had delivered it, and its holder is well. */
async function bury(deps: Deps, advisory: Advisory): Promise<"buried" | "gone" | "held"> {
  const queue = queueNamed(advisory.queue, deps.settings.namespace);
  if (!queue) return "gone";
  const [message] = await deps.bus.survivors(queue, advisory.seq, 1).catch((error: unknown) => {
    // A queue that was retired took its messages along.
    if (isPawlError(error, "queue_gone")) return [];
    throw error;
  });
  if (message?.seq !== advisory.seq) return "gone";
  if (!(await explain(deps, queue, message, advisory))) return "held";
  await deps.bus.remove(queue, advisory.seq);
  deps.log("warn", "message.given-up", { queue: advisory.queue, seq: advisory.seq });
  return "buried";
}

/** Returns once the message's sequence is settled in a document; false while its holder answers for it. */
async function explain(deps: Deps, queue: Queue, message: KeptMessage, advisory: Advisory): Promise<boolean> {
  const error: TaskFailure = {
    code: "deliveries_exhausted",
    message: `JetStream delivered sequence ${advisory.seq} of ${advisory.queue} ${advisory.deliveries} times, and nobody could decide what to do with it`,
    phase: "delivery",
  };
  const delivery = { ...message, queue: advisory.queue };
  const arrived = await arrive(deps, delivery, queue);
  const guard = whilePatient(deps, `Sequence ${advisory.seq} of ${advisory.queue}`);
  if (isPawlError(arrived)) {
    const problem = new PawlError(
      error.code as "deliveries_exhausted",
      `${error.message}. ${arrived.message}`,
    );
    await keepPoison(deps, { delivery, queue, guard, isSilent: async () => true }, problem);
    return true;
  }
  try {
    return await failCarried(deps, arrived, delivery, error, guard);
  } catch (unsound) {
    if (!isUnsound(unsound)) throw unsound;
    await keepUnsound(deps, { arrived, delivery, guard }, unsound);
    return true;
  }
}

/** Fails the task with its message, if that was its carrier. False while somebody still holds the task. */
async function failCarried(
  deps: Deps,
  arrived: Arrived,
  delivery: ReadMessage,
  error: TaskFailure,
  guard: Guard,
): Promise<boolean> {
  const { envelope, arrival } = arrived;
  const expiresAt = expiryOf(deps);
  for (;;) {
    const found = await readThrough(deps, envelope.id, guard);
    if (!found) {
      const letter = deadLetter(envelope, arrival, error, expiresAt, mark(deps));
      if ((await create(deps, letter, guard)).kind === "written") return true;
      continue;
    }
    if (isSettled(found.task, arrival.queue, arrival.seq)) return true;
    if (found.task.state === "running" && (await deps.bus.isHeld(found.task))) return false;
    if (!isSameWork(found.task, arrived)) await keepConflict(deps, { arrived, delivery, guard });
    if (isApart(deps, found.task, arrival.agent)) return true;
    // What its last holder paid, and could not say, goes into the dead letter.
    const reached = carries(found.task, arrived) ? await journalReached(deps, found.task, guard) : undefined;
    const written = await update(deps, found, changeOf(found, arrived, error, expiresAt, reached), guard);
    if (written.kind === "moot") continue;
    countSpent(deps, found.task, written.stored.task);
    return true;
  }
}

function isSameWork(task: Task, { arrival }: Arrived): boolean {
  return task.agent === arrival.agent && task.inputHash === arrival.inputHash;
}

/** Of the task's carrier: it failed. Of any other message: one too many. */
function changeOf(
  { task: seen }: Stored,
  arrived: Arrived,
  error: TaskFailure,
  expiresAt: number,
  reached: Reached | undefined,
) {
  const { queue, seq, dispatch } = arrived.arrival;
  return (task: Task, own: ReturnType<typeof mark>): Task | undefined => {
    if (task.stamp !== seen.stamp) return undefined;
    if (carries(task, arrived))
      return apply(task, { type: "exhaust", error, queue, seq, expiresAt, ...(reached && { reached }) }, own);
    const outcome = isSameWork(task, arrived) ? surplusAs(task, arrived.arrival) : "conflict";
    return apply(task, { type: "surplus", queue, seq, dispatch, outcome }, own);
  };
}

function carries(task: Task, arrived: Arrived): boolean {
  return isSameWork(task, arrived) && isCarrier(task, arrived.arrival);
}
