import { isPawlError, messageOf, PawlError } from "../errors/errors.ts";
import type { PublishResult } from "../ports/bus.ts";
import { type Deps, expiryOf } from "../ports/deps.ts";
import type { Stored } from "../ports/store.ts";
import { update } from "../retry/guarded-write.ts";
import { PATIENCE, whilePatient } from "../retry/patience.ts";
import { pause } from "../retry/retry.ts";
import type { Dispatched, DuplicateLayer, Task } from "../task/document.ts";
import { DISPATCH_HEADER, encodeEnvelope, REVISION_HEADER, SEAL_HEADER } from "../task/envelope.ts";
import type { TaskEvent } from "../task/events.ts";
import type { Queue } from "../task/names.ts";
import { isSettled } from "../task/settled.ts";
import { apply } from "../task/transitions.ts";

/** How long to try, and when a task that could not be published is due again. */
export interface Patience {
  readonly ms: number;
  readonly retryIn: number;
}

export interface Published {
  /** Set when the message was not stored anew: what stopped it. */
  readonly stoppedBy?: DuplicateLayer;
}

/**
 * Publishes a dispatched task's message: the document says so already, so a crash here is repaired from it.
 *
 * An unknown outcome is tried again under the same Msg-Id. "Already there" is success only if that message carries this
 * dispatch, or the document has moved on. A failure is definite, and rolled back to scheduled, only if no try of it had
 * an unknown outcome: else the message might be there after all.
 */
export async function publish(
  deps: Deps,
  stored: Stored & { task: Dispatched },
  queue: Queue,
  msgId: string,
  patience: Patience = { ms: PATIENCE, retryIn: 0 },
): Promise<Published> {
  const message = outgoing(stored, msgId);
  const isOwn = stored.task.dispatches === 1 && stored.task.meta?.msgId === msgId;
  const until = deps.clock.monotonic() + patience.ms;
  for (let failures = 0, unknown = false; ; ) {
    try {
      const result = await deps.bus.publish(queue, message);
      if (result.kind === "stored") {
        deps.trigger?.(stored.task.agent);
        if (isOwn) await noteCarrier(deps, stored, result.seq);
        return {};
      }
      const seen = await look(deps, stored, queue, result);
      if (seen === "there" && isOwn && result.kind === "duplicate")
        await noteCarrier(deps, stored, result.seq);
      if (seen === "there") return { stoppedBy: result.kind === "duplicate" ? "window" : "subject" };
      if (seen === "moved-on") return { stoppedBy: "document" };
      if (result.kind === "duplicate") throw taken(stored, msgId);
      // The subject is still occupied by a message that is settled and about to go.
      if (deps.clock.monotonic() > until) {
        throw new PawlError(
          "bus_unavailable",
          `Task ${stored.task.id}: its subject stayed occupied by an old message`,
        );
      }
      await pause(deps, "patience", ++failures);
    } catch (error) {
      if (isPawlError(error, "bus_unavailable")) unknown = true;
      // Nobody took it, which a cluster that is choosing its leader says too.
      if (isPawlError(error, "bus_unavailable") || isPawlError(error, "queue_missing")) {
        if (deps.clock.monotonic() <= until) {
          deps.meter.count("publish_retries", { agent: stored.task.agent, phase: "publish" });
          deps.log("warn", "publish.retry", {
            task: stored.task.id,
            phase: "publish",
            reason: messageOf(error),
          });
          await pause(deps, "patience", ++failures);
          continue;
        }
      }
      const isDefinite = !isPawlError(error, "bus_unavailable") && !isPawlError(error, "store_unavailable");
      if (isDefinite && !unknown) {
        // The submitter's own Msg-Id says that this is the same operation as another task: this one must not run.
        const isRepeat = isOwn && isPawlError(error, "msg_id_taken");
        await takeBack(deps, stored, error, isRepeat ? "dead letter" : patience.retryIn);
      }
      throw error;
    }
  }
}

/**
 * The window remembers a submitter's own Msg-Id longer than the stream may keep its message. Were that lost, and
 * published again under it, the task would look like a repeat of itself; by its sequence it is known to have been there.
 */
async function noteCarrier(deps: Deps, stored: Stored & { task: Dispatched }, seq: number): Promise<void> {
  const { id, dispatches } = stored.task;
  const isSame = (task: Task) =>
    task.state === "dispatched" && task.dispatches === dispatches && task.seq === undefined;
  try {
    await update(
      deps,
      stored,
      (task, own) => (isSame(task) ? apply(task, { type: "published", seq }, own) : undefined),
      whilePatient(deps, `Task ${id}`),
    );
  } catch (error) {
    // The message is there: only if it gets lost before its claim, the task is a dead letter.
    deps.log("warn", "publish.unnoted", { task: id, seq, reason: messageOf(error) });
  }
}

function outgoing({ task, revision }: Stored & { task: Dispatched }, msgId: string) {
  const [first] = task.history;
  const { id, agent, lane, orderingKey, parent, meta, input, inputHash, createdAt } = task;
  const data = encodeEnvelope({
    id,
    agent,
    lane,
    ...(orderingKey !== undefined && { orderingKey }),
    ...(parent !== undefined && { parent }),
    ...(meta !== undefined && { meta }),
    input,
    inputHash,
    at: createdAt,
    stamp: first?.stamp ?? "",
    by: first?.by ?? "",
  });
  // Only a document that still is what its submit wrote can be rebuilt from the message; any other is read.
  const isPristine = task.history.length === 1 && first?.event === "submit";
  const headers = {
    [DISPATCH_HEADER]: String(task.dispatches),
    ...(isPristine && { [REVISION_HEADER]: revision, ...(task.seal && { [SEAL_HEADER]: task.seal.own }) }),
  };
  return { taskId: id, data, msgId, headers };
}

/** What the "already there" is about. */
async function look(
  deps: Deps,
  { task }: Stored & { task: Dispatched },
  queue: Queue,
  result: PublishResult,
): Promise<"there" | "moved-on" | "gone"> {
  const there = await deps.bus.lookup(queue, task.id);
  if (there?.headers.get(DISPATCH_HEADER) === String(task.dispatches)) return "there";
  const now = await deps.store.get(task.id);
  if (now?.task.state !== "dispatched" || now.task.dispatches !== task.dispatches) return "moved-on";
  // Somebody's message for this task, unsettled: the claim adopts it.
  if (there && result.kind === "occupied" && !isSettled(now.task, task.queue, there.seq)) return "there";
  return "gone";
}

/** Scheduled again, or a dead letter where it must not run. */
async function takeBack(
  deps: Deps,
  stored: Stored & { task: Dispatched },
  cause: unknown,
  retryIn: number | "dead letter",
): Promise<void> {
  const { id, agent, dispatches, queue } = stored.task;
  const now = deps.clock.now();
  const error = { code: "msg_id_taken", message: messageOf(cause), phase: "delivery" } as const;
  const event: TaskEvent =
    retryIn === "dead letter"
      ? { type: "exhaust", error, queue, expiresAt: expiryOf(deps, now) }
      : { type: "rollback", dueAt: now + retryIn, note: messageOf(cause) };
  try {
    const written = await update(
      deps,
      stored,
      (task, own) =>
        task.state === "dispatched" && task.dispatches === dispatches && task.seq === undefined
          ? apply(task, event, own)
          : undefined,
      whilePatient(deps, `Task ${id}`, { agent, phase: "rollback_write" }),
    );
    if (written.kind === "moot") return;
    deps.meter.count("publish_rollbacks", { agent, phase: "publish" });
    deps.log("warn", "publish.rolled-back", { task: id, phase: "publish", reason: messageOf(cause) });
  } catch (error) {
    // It stays dispatched with no message, which the sweep for orphans repairs.
    deps.meter.count("rollback_failures", { agent, phase: "rollback_write" });
    deps.log("error", "rollback.failed", { task: id, phase: "rollback_write", reason: messageOf(error) });
  }
}

function taken({ task }: Stored, msgId: string): PawlError {
  return new PawlError(
    "msg_id_taken",
    `Task ${task.id}: Msg-Id ${JSON.stringify(msgId)} was used for another message inside the duplicate window`,
  );
}
