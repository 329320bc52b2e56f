import type { Advisory, KeptMessage } from "../ports/bus.ts";
import type { Stored } from "../ports/store.ts";
import { deadLetter } from "../task/create.ts";
import type { Task, TaskFailure } from "../task/document.ts";
import { isPawlError, messageOf, PawlError } from "../task/errors.ts";
import type { TaskEvent } from "../task/events.ts";
import { type Queue, queueNamed } from "../task/names.ts";
import { isSettled } from "../task/settled.ts";
import { apply } from "../task/transitions.ts";
import { type Arrived, arrive, keepPoison } from "./arrive.ts";
import { type Deps, mark, whilePatient } from "./deps.ts";
import { create, readThrough, update } from "./write.ts";

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
      if (await bury(deps, advisory)) buried++;
      await deps.bus.forgetAdvisory(advisory);
    } catch (error) {
      const { queue, seq } = advisory;
      deps.log("warn", "advisory.failed", { queue, seq, reason: messageOf(error) });
    }
  }
  return buried;
}

async function bury(deps: Deps, advisory: Advisory): Promise<boolean> {
  const queue = queueNamed(advisory.queue, deps.settings.namespace);
  if (!queue) return false;
  const [message] = await deps.bus.survivors(queue, advisory.seq, 1);
  if (message?.seq !== advisory.seq) return false;
  await explain(deps, queue, message, advisory);
  await deps.bus.remove(queue, advisory.seq);
  deps.log("warn", "message.given-up", { queue: advisory.queue, seq: advisory.seq });
  return true;
}

/** Returns once the message's sequence is settled in a document. */
async function explain(deps: Deps, queue: Queue, message: KeptMessage, advisory: Advisory): Promise<void> {
  const error: TaskFailure = {
    code: "deliveries_exhausted",
    message: `JetStream delivered sequence ${advisory.seq} of ${advisory.queue} ${advisory.deliveries} times, and nobody could decide what to do with it`,
    phase: "delivery",
  };
  const delivery = { ...message, queue: advisory.queue };
  const arrived = await arrive(delivery, queue, deps);
  const guard = whilePatient(deps, `Sequence ${advisory.seq} of ${advisory.queue}`);
  if (isPawlError(arrived)) {
    const problem = new PawlError(
      error.code as "deliveries_exhausted",
      `${error.message}. ${arrived.message}`,
    );
    await keepPoison(delivery, queue, problem, guard, async () => true, deps);
    return;
  }
  const { envelope, arrival } = arrived;
  const expiresAt = deps.clock.now() + deps.settings.retention;
  for (;;) {
    const found = await readThrough(deps, envelope.id, guard);
    if (!found) {
      const letter = deadLetter(envelope, arrival, error, expiresAt, mark(deps));
      if ((await create(deps, letter, guard)).kind === "written") return;
      continue;
    }
    if (isSettled(found.task, arrival.queue, arrival.seq)) return;
    const written = await update(deps, found, changeOf(found, arrived, error, expiresAt), guard);
    if (written.kind === "written") return;
  }
}

/** Of the task's carrier: it failed. Of any other message: one too many. */
function changeOf({ task: seen }: Stored, { arrival }: Arrived, error: TaskFailure, expiresAt: number) {
  const { queue, seq, dispatch } = arrival;
  return (task: Task, own: ReturnType<typeof mark>): Task | undefined => {
    if (task.stamp !== seen.stamp) return undefined;
    const isCarrier =
      (task.state === "running" && task.queue === queue && task.seq === seq) ||
      (task.state === "dispatched" &&
        (task.seq === undefined ? dispatch === task.dispatches : task.seq === seq));
    const event: TaskEvent = isCarrier
      ? { type: "exhaust", error, queue, seq, expiresAt }
      : { type: "surplus", queue, seq, dispatch, outcome: "duplicate" };
    return apply(task, event, own);
  };
}
