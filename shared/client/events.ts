import type { Connection } from "./connection.ts";
import { type Frame, frames } from "./frames.ts";
import { foreign } from "./problem.ts";
import { ask, type CallOptions } from "./request.ts";
import type { TaskEvent } from "./task.ts";

/** Of a task's events. */
export interface EventOptions extends CallOptions {
  /** The `id` of an event: goes on after it. From the task's first write by default. */
  readonly after?: string;
  /** Also what a model says while its turn runs. */
  readonly deltas?: boolean;
}

/** What was told is remembered so far, for streams that begin again earlier than they were asked to. */
const REMEMBERED = 256;
/** A stream that lasted so long has shown that it works. */
const LASTED = 10_000;
const KINDS: readonly string[] = ["transition", "journal", "delta", "end"] satisfies TaskEvent["kind"][];

/**
 * What happens to a task, until it is over. A stream that ends or breaks is gone on with after the last event that came
 * whole, so none is lost; what comes a second time is dropped.
 */
export async function* follow(
  connection: Connection,
  id: string,
  { after, deltas, signal }: EventOptions = {},
): AsyncGenerator<TaskEvent, void> {
  const { now, sleep, pause } = connection;
  const path = `/v1/tasks/${encodeURIComponent(id)}/events${deltas ? "?deltas=true" : ""}`;
  const told = new Set<string>();
  let last = after;
  for (let fruitless = 0; ; fruitless++) {
    const headers = last === undefined ? {} : { "last-event-id": last };
    const body = await ask(connection, { path, headers, signal, isRepeatable: true }, streamOf);
    const began = now();
    const messages = frames(body, signal);
    try {
      for (;;) {
        const next = await messages.next().catch(() => undefined);
        if (!next || next.done) break;
        const event = eventOf(next.value);
        if (!event) continue;
        fruitless = 0;
        last = event.id;
        if (isNew(event, told)) yield event;
        if (event.kind === "end") return;
      }
    } finally {
      void messages.return();
    }
    signal?.throwIfAborted();
    if (now() - began > LASTED) fruitless = 0;
    await sleep(pause(fruitless + 1), signal);
  }
}

async function streamOf({ status, headers, body }: Response): Promise<ReadableStream<Uint8Array>> {
  const type = headers.get("content-type");
  if (body && type?.startsWith("text/event-stream")) return body;
  void body?.cancel().catch(() => {});
  throw foreign(status, type, "");
}

/** Undefined: of a kind that only a later client knows. */
function eventOf({ event, id, data }: Frame): TaskEvent | undefined {
  if (!KINDS.includes(event)) return undefined;
  try {
    return { kind: event, id, data: JSON.parse(data) } as TaskEvent;
  } catch {
    throw foreign(200, "text/event-stream", data);
  }
}

/** Whoever was away while much happened is told all of a history that is still there, by the API's word. */
function isNew({ kind, data }: TaskEvent, told: Set<string>): boolean {
  if (kind !== "transition") return true;
  if (told.has(data.stamp)) return false;
  told.add(data.stamp);
  if (told.size > REMEMBERED) for (const oldest of told) return told.delete(oldest);
  return true;
}
