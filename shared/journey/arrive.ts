import type { Delivery } from "../ports/bus.ts";
import { deadLetter } from "../task/create.ts";
import type { Arrival } from "../task/decide.ts";
import type { RawMessage, TaskFailure } from "../task/document.ts";
import { DISPATCH_HEADER, decodeEnvelope, type Envelope, REVISION_HEADER } from "../task/envelope.ts";
import { isPawlError, type PawlError } from "../task/errors.ts";
import { hashInput, sha256 } from "../task/json.ts";
import { isTaskId, type Queue, subjectPrefix } from "../task/names.ts";
import { isSettled } from "../task/settled.ts";
import { apply } from "../task/transitions.ts";
import { type Deps, mark } from "./deps.ts";
import { create, type Guard, update } from "./write.ts";

/** A message that is a task. */
export interface Arrived {
  readonly envelope: Envelope;
  readonly arrival: Arrival;
  readonly revision?: string;
}

/** Reads a message; one that can't be read comes back as the error that says why. */
export async function arrive(delivery: Delivery, queue: Queue, deps: Deps): Promise<Arrived | PawlError> {
  try {
    const envelope = await decodeEnvelope(delivery, queue, deps.settings.inputLimit);
    const revision = delivery.headers.get(REVISION_HEADER);
    const { inputHash } = envelope;
    const arrival = { queue: delivery.queue, seq: delivery.seq, dispatch: dispatchOf(delivery), inputHash };
    return { envelope, arrival, ...(revision !== undefined && { revision }) };
  } catch (error) {
    if (isPawlError(error)) return error;
    throw error;
  }
}

/**
 * Keeps a message that is no task: a failed document with its bytes, under the id its subject names. Where that id is
 * unusable or belongs to a real task, under one made from its sequence, and the task's document is told.
 */
export async function keepPoison(
  delivery: Delivery,
  queue: Queue,
  problem: PawlError,
  guard: Guard,
  deps: Deps,
): Promise<string> {
  const named = delivery.subject.slice(subjectPrefix(queue).length);
  const error: TaskFailure = { code: problem.code, message: problem.message, phase: "envelope" };
  if (!isTaskId(named)) return keep(await derivedId(delivery), error, delivery, queue, guard, deps);

  const kept = await keep(named, error, delivery, queue, guard, deps);
  if (kept === named) return kept;
  // A real task has the id. The bytes are safe in a dead letter of their own; the task learns of the sequence.
  const found = await deps.store.get(named);
  if (found) {
    const { queue: stream, seq } = delivery;
    const conflict = {
      type: "surplus",
      queue: stream,
      seq,
      dispatch: 0,
      outcome: "conflict",
      note: kept,
    } as const;
    await update(deps, found, (task, own) => apply(task, conflict, own), guard);
  }
  return kept;
}

/** The same id published with another input: its input becomes a dead letter of its own. */
export async function keepConflict(
  arrived: Arrived,
  delivery: Delivery,
  guard: Guard,
  deps: Deps,
): Promise<string> {
  const { envelope, arrival } = arrived;
  const error: TaskFailure = {
    code: "id_conflict",
    message: `Task ${envelope.id} has another input than this message (sequence ${delivery.seq} of ${delivery.queue})`,
    phase: "envelope",
  };
  const id = await derivedId(delivery);
  const expiresAt = deps.clock.now() + deps.settings.retention;
  await create(deps, deadLetter({ ...envelope, id }, arrival, error, expiresAt, mark(deps)), guard);
  return id;
}

async function keep(
  id: string,
  error: TaskFailure,
  delivery: Delivery,
  queue: Queue,
  guard: Guard,
  deps: Deps,
): Promise<string> {
  const kind = { id, agent: queue.agent, lane: queue.lane, input: {}, inputHash: await hashInput({}) };
  const carrier = { queue: delivery.queue, seq: delivery.seq, dispatch: dispatchOf(delivery) };
  const expiresAt = deps.clock.now() + deps.settings.retention;
  const letter = deadLetter(
    kind,
    carrier,
    error,
    expiresAt,
    mark(deps),
    raw(delivery, deps.settings.inputLimit),
  );
  const result = await create(deps, letter, guard);
  const mine =
    result.kind === "written" || (result.stored && isSettled(result.stored.task, carrier.queue, carrier.seq));
  if (mine) return id;
  return keep(await derivedId(delivery), error, delivery, queue, guard, deps);
}

function raw(delivery: Delivery, limit: number): RawMessage {
  const kept = delivery.data.subarray(0, limit);
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
async function derivedId(delivery: Delivery): Promise<string> {
  return `stray-${(await sha256(`${delivery.queue}:${delivery.seq}`)).slice(0, 32)}`;
}

function dispatchOf(delivery: Delivery): number {
  const text = delivery.headers.get(DISPATCH_HEADER) ?? "0";
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}
