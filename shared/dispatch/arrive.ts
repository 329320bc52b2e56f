import { isPawlError, type PawlError } from "../errors/errors.ts";
import type { Delivery } from "../ports/bus.ts";
import type { Deps } from "../ports/deps.ts";
import type { Arrival } from "../task/decide.ts";
import {
  DISPATCH_HEADER,
  decodeEnvelope,
  type Envelope,
  REVISION_HEADER,
  SEAL_HEADER,
} from "../task/envelope.ts";
import type { Queue } from "../task/names.ts";
import { plainTraceparent } from "../values/traceparent.ts";

/** A message that is a task. */
export interface Arrived {
  readonly envelope: Envelope;
  readonly arrival: Arrival;
  /** Of the document as its submit wrote it. */
  readonly revision?: string;
  readonly seal?: string;
}

/** What is read of a message, whether it was delivered or found lying in its stream. */
export type ReadMessage = Pick<Delivery, "subject" | "data" | "headers" | "queue" | "seq">;

/** Reads a message; one that can't be read comes back as the error that says why. */
export async function arrive(deps: Deps, delivery: ReadMessage, queue: Queue): Promise<Arrived | PawlError> {
  try {
    const envelope = withHeader(await decodeEnvelope(delivery, queue, deps.settings.inputLimit), delivery);
    const revision = delivery.headers.get(REVISION_HEADER);
    const seal = delivery.headers.get(SEAL_HEADER);
    const { agent, inputHash } = envelope;
    const arrival = {
      agent,
      queue: delivery.queue,
      seq: delivery.seq,
      dispatch: dispatchOf(delivery),
      inputHash,
    };
    return {
      envelope,
      arrival,
      ...(revision !== undefined && { revision }),
      ...(seal !== undefined && { seal }),
    };
  } catch (error) {
    if (isPawlError(error)) return error;
    throw error;
  }
}

/** Whoever publishes directly says in a header which trace it belongs to. */
function withHeader(envelope: Envelope, delivery: ReadMessage): Envelope {
  const { headers } = delivery;
  if (dispatchOf(delivery) > 0 || envelope.meta?.traceparent !== undefined) return envelope;
  const traceparent = plainTraceparent(headers.get("traceparent") ?? headers.get("Traceparent"));
  return traceparent === undefined ? envelope : { ...envelope, meta: { ...envelope.meta, traceparent } };
}

/** Which dispatch of its task a message is of; 0 where Pawl did not publish it. */
export function dispatchOf(delivery: ReadMessage): number {
  const text = delivery.headers.get(DISPATCH_HEADER) ?? "0";
  return /^\d{1,9}$/.test(text) ? Number(text) : 0;
}
