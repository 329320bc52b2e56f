import { PawlError } from "../errors/errors.ts";
import { hashInput, isJsonObject, type Json, type JsonObject, parseJson } from "../values/json.ts";
import { readTraceparent } from "../values/traceparent.ts";
import type { Meta, Millis } from "./document.ts";
import { isTaskId, type Queue, subjectPrefix } from "./names.ts";

export const ENVELOPE_VERSION = 1;
/** Longest ordering key, in characters. */
export const LABEL_LIMIT = 512;

export const MOST_LABELS = 16;

/** Headers of a dispatched message. Without them a message was published directly. */
export const DISPATCH_HEADER = "Pawl-Dispatch";
export const REVISION_HEADER = "Pawl-Revision";
/** Of the document as its submit wrote it: who rebuilds it from the message sees whether that is the same. */
export const SEAL_HEADER = "Pawl-Seal";

/** A message, read. Everything that a first claim needs to rebuild the document is in it. */
export interface Envelope {
  readonly id: string;
  readonly agent: string;
  readonly lane: number;
  readonly orderingKey?: string;
  readonly parent?: string;
  readonly meta?: Meta;
  readonly input: JsonObject;
  readonly inputHash: string;
  readonly at: Millis;
  /** Of the write that created the document. */
  readonly stamp: string;
  readonly by: string;
}

export function encodeEnvelope(envelope: Envelope): Uint8Array {
  const { id, agent, orderingKey, parent, meta, input, at, stamp, by } = envelope;
  return new TextEncoder().encode(
    JSON.stringify({ v: ENVELOPE_VERSION, id, agent, orderingKey, parent, meta, at, stamp, by, input }),
  );
}

/** Reads a message's bytes. Throws a PawlError that says what is wrong with them; the caller keeps the bytes. */
export async function decodeEnvelope(
  message: { subject: string; data: Uint8Array },
  queue: Queue,
  inputLimit: number,
): Promise<Envelope> {
  const id = message.subject.slice(subjectPrefix(queue).length);
  if (!isTaskId(id)) {
    throw new PawlError(
      "task_id_invalid",
      `The message's subject ends in ${shown(id)}, which is not a task id`,
    );
  }
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(message.data);
  } catch {
    throw new PawlError("envelope_invalid", `The message (${message.data.length} bytes) is not UTF-8 text`);
  }
  const body = parseJson(text, "The message", "envelope_invalid");
  if (!isJsonObject(body)) throw new PawlError("envelope_invalid", "The message is not a JSON object");
  if (body.v === undefined) {
    throw new PawlError(
      "envelope_invalid",
      `The message has no envelope version: it should be {"v": ${ENVELOPE_VERSION}, "input": {…}}`,
    );
  }
  if (body.v !== ENVELOPE_VERSION) {
    throw new PawlError(
      "envelope_version",
      `The message's envelope version is ${shown(body.v)}; this runner speaks ${ENVELOPE_VERSION}`,
    );
  }
  if (body.id !== undefined && body.id !== id) {
    throw new PawlError(
      "envelope_invalid",
      `The message says it is task ${shown(body.id)}, its subject says ${id}`,
    );
  }
  if (body.agent !== undefined && body.agent !== queue.agent) {
    throw new PawlError(
      "agent_mismatch",
      `The message is for agent ${shown(body.agent)}, on a queue of ${queue.agent}`,
    );
  }
  for (const field of ["orderingKey", "parent", "stamp", "by"] as const) {
    const value = body[field];
    if (typeof value === "string" && value.length > LABEL_LIMIT) {
      throw new PawlError(
        "envelope_invalid",
        `The message's ${field} has ${value.length} characters; ${LABEL_LIMIT} is the limit`,
      );
    }
  }
  if (!isJsonObject(body.input)) {
    throw new PawlError("input_invalid", `The input must be a JSON object, not ${kindOf(body.input)}`);
  }
  checkInputSize(body.input, inputLimit);
  return {
    id,
    agent: queue.agent,
    lane: queue.lane,
    ...(typeof body.orderingKey === "string" && { orderingKey: body.orderingKey }),
    ...(typeof body.parent === "string" && { parent: body.parent }),
    ...(isJsonObject(body.meta) && { meta: readMeta(body.meta) }),
    input: body.input,
    inputHash: hashInput(body.input),
    at: typeof body.at === "number" ? body.at : 0,
    stamp: typeof body.stamp === "string" ? body.stamp : "",
    by: typeof body.by === "string" ? body.by : "unknown",
  };
}

/** An input as a caller hands it over, before there is an envelope around it. */
export function checkInput(text: string, inputLimit: number): JsonObject {
  const bytes = new TextEncoder().encode(text).length;
  if (bytes > inputLimit) throw tooLarge(bytes, inputLimit);
  const input = parseJson(text, "The input");
  if (!isJsonObject(input)) {
    throw new PawlError("input_invalid", `The input must be a JSON object, not ${kindOf(input)}`);
  }
  return input;
}

/** How many bytes it has. */
export function checkInputSize(input: JsonObject, inputLimit: number): number {
  const bytes = new TextEncoder().encode(JSON.stringify(input)).length;
  if (bytes > inputLimit) throw tooLarge(bytes, inputLimit);
  return bytes;
}

function tooLarge(bytes: number, limit: number): PawlError {
  return new PawlError(
    "input_too_large",
    `The input has ${bytes} bytes; the limit is ${limit} (PAWL_INPUT_LIMIT)`,
  );
}

function kindOf(value: unknown): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  return Array.isArray(value) ? "an array" : `a ${typeof value}`;
}

function shown(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 140) ?? "nothing";
}

/** In one order, so that the document is the same text whether a submit or a message made it. */
export function metaOf({ owner, requestHash, msgId, labels, traceparent }: Meta): Meta {
  return {
    ...(owner !== undefined && { owner }),
    ...(requestHash !== undefined && { requestHash }),
    ...(msgId !== undefined && { msgId }),
    ...(labels !== undefined && { labels }),
    ...(traceparent !== undefined && { traceparent }),
  };
}

/** What is no meta of ours is left out: a message can be written by anyone. */
function readMeta({ owner, requestHash, msgId, labels, traceparent }: JsonObject): Meta {
  const short = (value: Json | undefined): value is string =>
    typeof value === "string" && value.length <= LABEL_LIMIT;
  const kept = isJsonObject(labels)
    ? Object.entries(labels).filter(([key, value]) => short(key) && short(value))
    : [];
  return metaOf({
    ...(short(owner) && { owner }),
    ...(short(requestHash) && { requestHash }),
    ...(short(msgId) && { msgId }),
    ...(kept.length > 0 && {
      labels: Object.fromEntries(kept.slice(0, MOST_LABELS)) as Record<string, string>,
    }),
    ...(short(traceparent) && readTraceparent(traceparent) && { traceparent }),
  });
}
