import { isUnsound, type PawlError } from "../errors/errors.ts";
import { countSpent, journalReached } from "../journal/journal.ts";
import { type Deps, expiryOf, mark } from "../ports/deps.ts";
import { create, readThrough, update } from "../retry/guarded-write.ts";
import type { Guard } from "../retry/guards.ts";
import { DOCUMENT_LIMIT } from "../settings/settings.ts";
import { deadLetter } from "../task/create.ts";
import { isCarrier } from "../task/decide.ts";
import type { Failed, RawMessage, Running, Task, TaskFailure } from "../task/document.ts";
import type { TaskEvent } from "../task/events.ts";
import { isTaskId, type Queue, subjectPrefix } from "../task/names.ts";
import { isSettled } from "../task/settled.ts";
import { apply } from "../task/transitions.ts";
import { hashInput, sha256 } from "../values/json.ts";
import { type Arrived, dispatchOf, type ReadMessage } from "./arrive.ts";

/** Whether a task's holder may be taken for dead. */
export type IsSilent = (task: Running) => Promise<boolean>;

/** A message that is no task, in somebody's hands. */
export interface Poison {
  readonly delivery: ReadMessage;
  readonly queue: Queue;
  readonly guard: Guard;
  readonly isSilent: IsSilent;
}

/**
 * Keeps a message that is no task: a failed document with its bytes, under the id its subject names. If it carries a task
 * that is there (this runner is of another version, or has another limit), that task fails, with its input. If a real
 * task has the id otherwise, the bytes are kept under an id made from the sequence, and the task's document is told.
 */
export async function keepPoison(
  deps: Deps,
  { delivery, queue, guard, isSilent }: Poison,
  problem: PawlError,
): Promise<string> {
  const named = delivery.subject.slice(subjectPrefix(queue).length);
  const error: TaskFailure = { code: problem.code, message: problem.message, phase: "envelope" };
  const letter = async (id: string) => poisonLetter(deps, { delivery, queue }, id, error);
  const stray = await derivedId(delivery);
  const { queue: stream, seq } = delivery;
  const keep = async (): Promise<string | undefined> => {
    const found = isTaskId(named) ? await readThrough(deps, named, guard) : undefined;
    if (!found) {
      const id = isTaskId(named) ? named : stray;
      const kept = await create(deps, await letter(id), guard);
      return kept.kind === "written" || id === stray ? id : undefined;
    }
    if (isSettled(found.task, stream, seq)) return named;
    let change: TaskEvent;
    if (isCarrier(found.task, { queue: stream, seq, dispatch: dispatchOf(delivery) })) {
      if (found.task.state === "running" && !(await isSilent(found.task))) return undefined;
      const expiresAt = expiryOf(deps);
      const reached = await journalReached(deps, found.task, guard);
      change = { type: "exhaust", error, queue: stream, seq, expiresAt, reached };
    } else {
      await create(deps, await letter(stray), guard);
      if (isApart(deps, found.task, queue.agent)) return stray;
      change = { type: "surplus", queue: stream, seq, dispatch: 0, outcome: "conflict", note: stray };
    }
    const written = await update(
      deps,
      found,
      // Decided again if anyone moved it: what was its carrier may not be any more.
      (task, own) => (task.stamp === found.task.stamp ? apply(task, change, own) : undefined),
      guard,
    );
    if (written.kind === "moot") return undefined;
    countSpent(deps, found.task, written.stored.task);
    return change.type === "exhaust" ? named : stray;
  };
  try {
    for (;;) {
      const kept = await keep();
      if (kept !== undefined) return kept;
    }
  } catch (unsound) {
    // The document under the id that it names can't be acted upon, and stays as it is.
    if (!isUnsound(unsound)) throw unsound;
    await create(deps, await letter(stray), guard);
    return stray;
  }
}

/** A message that is a task, and whose task can't take it. */
interface Apart {
  readonly arrived: Arrived;
  readonly delivery: ReadMessage;
  readonly guard: Guard;
}

/**
 * Whether nothing of a message may be said in a document: it is another agent's, and agents are kept apart. A document that
 * names another agent's queue is believed by nobody then, for its agent could have it say that others' work is done. The dead
 * letter of the message settles it.
 */
export function isApart({ settings }: Pick<Deps, "settings">, task: Task, agent: string): boolean {
  return settings.isolation !== "shared" && task.agent !== agent;
}

/** The same id published with another input: its input becomes a dead letter of its own. */
export function keepConflict(deps: Deps, message: Apart): Promise<string> {
  const { seq, queue } = message.delivery;
  const text = `Task ${message.arrived.envelope.id} has another agent or input than this message (sequence ${seq} of ${queue})`;
  return keepApart(deps, message, { code: "id_conflict", message: text, phase: "envelope" });
}

/** The document of its task can't be acted upon. */
export async function keepUnsound(deps: Deps, message: Apart, error: PawlError): Promise<string> {
  const { seq, queue } = message.delivery;
  const { code, message: reason } = error;
  const kept = await keepApart(deps, message, { code, message: reason, phase: "delivery" });
  deps.log("error", "document.unsound", { task: message.arrived.envelope.id, queue, seq, kept, reason });
  return kept;
}

/** A message whose task can't take it becomes a dead letter of its own, which settles its sequence. */
async function keepApart(deps: Deps, message: Apart, error: TaskFailure): Promise<string> {
  const { arrived, delivery, guard } = message;
  const { envelope, arrival } = arrived;
  const id = await derivedId(delivery);
  await create(deps, deadLetter({ ...envelope, id }, arrival, error, expiryOf(deps), mark(deps)), guard);
  return id;
}

async function poisonLetter(
  deps: Deps,
  { delivery, queue }: Pick<Poison, "delivery" | "queue">,
  id: string,
  error: TaskFailure,
): Promise<Failed> {
  const kind = { id, agent: queue.agent, lane: queue.lane, input: {}, inputHash: hashInput({}) };
  const carrier = { queue: delivery.queue, seq: delivery.seq, dispatch: dispatchOf(delivery) };
  const expiresAt = expiryOf(deps);
  return deadLetter(kind, carrier, error, expiresAt, mark(deps), raw(delivery, deps.settings.inputLimit));
}

/** Most bytes that fit a document as base64, with room for the rest of it. */
const RAW_LIMIT = Math.floor(((DOCUMENT_LIMIT - 32 * 1024) * 3) / 4);

function raw(delivery: ReadMessage, limit: number): RawMessage {
  const kept = delivery.data.subarray(0, Math.min(limit, RAW_LIMIT));
  let binary = "";
  for (const byte of kept) binary += String.fromCharCode(byte);
  return {
    base64: btoa(binary),
    bytes: delivery.data.length,
    truncated: kept.length < delivery.data.length,
    subject: delivery.subject.slice(0, 1024),
  };
}

/** The same for every delivery of one message, so that a redelivery finds what was kept. */
async function derivedId(delivery: ReadMessage): Promise<string> {
  return `stray-${sha256(`${delivery.queue}:${delivery.seq}`).slice(0, 32)}`;
}
