import { PawlError, Unreadable } from "../../errors/errors.ts";
import type { Found, StoredRecord, TaskStore } from "../../ports/store.ts";
import type { Task } from "../../task/document.ts";
import { isTaskId, queueNamed } from "../../task/names.ts";
import { readTask } from "../../task/shape.ts";
import { inPieces, type Looked } from "../many.ts";
import { type Bucket, MOST_CHARS, SHARED, taskIdOf } from "./bucket.ts";

const DOCUMENTS = "task.*";

/** What lies under a document's key. */
export function foundAt(key: string, revision: number | string, text: string): Found {
  const at = { key, revision: String(revision) };
  try {
    return { ...at, task: readTask(text, key) };
  } catch (error) {
    if (error instanceof Unreadable) return { ...at, unreadable: error.why };
    throw error;
  }
}

/** The same, in a bucket that has one agent's documents. */
export function foundOf(agent: string, namespace: string): typeof foundAt {
  return (key, revision, text) => {
    const found = foundAt(key, revision, text);
    const why = "task" in found ? foreign(found.task, agent, namespace) : undefined;
    return why === undefined ? found : { key, revision: String(revision), unreadable: why };
  };
}

/**
 * Why a document does not belong into an agent's bucket. Its agent can write there what it likes, and functions that may
 * do more act on it: one that named another agent, or another's queue, would have them publish and delete there.
 */
export function foreign(task: Task, agent: string, namespace: string): string | undefined {
  if (task.agent !== agent) return `it is one of agent ${task.agent}, and lies in the bucket of ${agent}`;
  const queues = [...("queue" in task ? [task.queue] : []), ...task.settled.map(({ queue }) => queue)];
  const other = queues.find((queue) => (queueNamed(queue, namespace)?.agent ?? agent) !== agent);
  return other === undefined ? undefined : `it names ${other}, which is no queue of ${agent}`;
}

/** The order of writes is that of the bucket's stream: a revision is a place in it. */
export function changeReader(bucket: Bucket): Pick<TaskStore, "position" | "changes"> {
  return {
    position: async () => {
      const { state, created, ts } = await bucket.info("Asking for the time");
      if (ts === undefined) throw new PawlError("server_too_old", "The nats-server does not say its time");
      return { cursor: cursorOf({ revision: state.last_seq, created }), now: Date.parse(ts) };
    },
    changes: async (after, limit) => {
      const what = "Looking for changed tasks";
      const place = after === undefined ? undefined : readCursor(after);
      const [{ state, created }, last] = await Promise.all([
        bucket.info(what),
        bucket.lastOf(what, DOCUMENTS),
      ]);
      const isThere = place?.created === created && place.revision <= state.last_seq;
      let revision = isThere ? place.revision : 0;
      const documents = new Map<string, Found>();
      let seen = 0;
      let bytes = 0;
      for await (const entry of bucket.scan(what, [DOCUMENTS], {
        from: revision + 1,
        markers: true,
        limit,
      })) {
        const key = taskIdOf(entry.key);
        revision = entry.revision;
        // It may have been written again since the first of them were read.
        documents.delete(key);
        if (!entry.isMarker) documents.set(key, bucket.found(key, revision, entry.text()));
        seen++;
        bytes += entry.bytes;
        if (bytes > MOST_CHARS) break;
      }
      // Which copy of the stream is read is the server's choice, and one may lag behind the leader: that is not the end.
      const isLast = seen < limit && bytes <= MOST_CHARS && revision >= last;
      return { documents: [...documents.values()], cursor: cursorOf({ revision, created }), isLast };
    },
  };
}

/** A document as it is stored; and how it is read, where that is not as everywhere. */
interface StoredText extends StoredRecord {
  readonly found?: typeof foundAt;
}

/** Each by a read of its own, many at once: in bulk they may come from a copy that lags behind. */
export function manyReader(read: (id: string) => Promise<StoredText | undefined>): TaskStore["getMany"] {
  const look = async (id: string): Promise<Looked> => {
    // What is no id may be no key either.
    const stored = isTaskId(id) ? await read(id) : undefined;
    const found = stored && (stored.found ?? foundAt)(id, stored.revision, stored.text);
    return { found, chars: stored?.text.length ?? 0 };
  };
  return (ids) => inPieces(ids, MOST_CHARS, (some) => Promise.all(some.map(look)));
}

/** A revision, and when its stream was made: another of the same name has other revisions. */
interface Place {
  readonly revision: number;
  readonly created: string;
}

const cursorOf = ({ revision, created }: Place) => `${revision}.${created}`;

/** A place in several buckets, of when agents had their own, is one in this by its own member, if it has that. */
function readCursor(cursor: string): Place | undefined {
  const places = placesIn(cursor);
  const place = places ? places[SHARED] : cursor;
  if (place === undefined) return undefined;
  const [, revision, created] = /^(\d{1,15})\.(.{1,60})$/.exec(place) ?? [];
  if (revision === undefined || created === undefined) throw wrongCursor(cursor);
  return { revision: Number(revision), created };
}

/** Places by the names of their buckets; undefined where it is no such cursor. */
export function placesIn(cursor: string): Readonly<Record<string, string>> | undefined {
  if (!cursor.startsWith("{")) return undefined;
  try {
    return JSON.parse(cursor) as Record<string, string>;
  } catch {
    return undefined;
  }
}

export function wrongCursor(cursor: string): PawlError {
  return new PawlError("input_invalid", `${JSON.stringify(cursor.slice(0, 200))} is not a cursor of changes`);
}
