import { PawlError } from "../../errors/errors.ts";
import type { TaskStore } from "../../ports/store.ts";
import { isTaskId } from "../../task/names.ts";
import { inPieces, type Looked } from "../many.ts";
import { comparable } from "./codec.ts";
import { type Answer, charsOf, foundIn, MOST_BYTES, type Read, type Time } from "./pages.ts";

/** What the order of writes asks of Firestore, whichever way it is reached. Times are "seconds.nanoseconds". */
export interface Ordered {
  /** Of a read: it sees all that was finished before, and what is finished later has a later revision. */
  readTime(what: string): Promise<string>;
  /** All documents, in the order of their names. */
  byName(what: string, limit: number, after?: string): Promise<Answer>;
  /** Documents whose `writtenAt` is later than `from`, in its order. */
  byTime(what: string, limit: number, from: string, after?: { at: string; key: string }): Promise<Answer>;
  /** The documents that there are, in any order; undefined where they are too much to be held at once. */
  many(what: string, ids: readonly string[]): Promise<readonly Read[] | undefined>;
}

/**
 * How much later than its `writtenAt` a document may be there. That is when the server took the write up, and the commit
 * comes after; it gives up a transaction after 270 s.
 */
const LATE = 300;

/**
 * A place is the time of a read: what was written after it has a later revision, by the server's clock. Revisions can't
 * be asked for, but `writtenAt`, which is never much earlier, can: from a little before the place on, and without what
 * has an older revision.
 *
 * A pass goes through documents in an order in which some may appear, or move, behind the reader. So it ends with the
 * time at which it began as the next place: whatever it missed was written since.
 */
export function changeReader(ordered: Ordered): Pick<TaskStore, "position" | "changes" | "getMany"> {
  return {
    position: async () => {
      const at = await ordered.readTime("Asking for the time");
      return { cursor: cursorOf({ since: at }), now: Math.floor(Number(at) * 1000) };
    },
    changes: async (after, limit) => {
      const what = "Looking for changed tasks";
      const place: Place = after === undefined ? {} : readCursor(after);
      const begun = place.begun ?? (await ordered.readTime(what));
      const { since, at, key } = place;
      if (since === undefined) {
        const { found, isCut } = await ordered.byName(what, limit, key);
        const last = isCut || found.length === limit ? found.at(-1) : undefined;
        const cursor = cursorOf(last ? { begun, key: last.key } : { since: begun });
        // What was written meanwhile is not among them yet.
        return { documents: found.map(foundIn), cursor, isLast: false };
      }
      const from = earlier(since, LATE);
      const behind = at !== undefined && key !== undefined ? { at, key } : undefined;
      const { found, isCut } = await ordered.byTime(what, limit, from, behind);
      const documents = found.filter(({ revision }) => comparable(revision) > comparable(since)).map(foundIn);
      const last = isCut || found.length === limit ? found.at(-1) : undefined;
      if (!last) return { documents, cursor: cursorOf({ since: begun }), isLast: true };
      const { time } = last.fields.writtenAt as Time;
      return { documents, cursor: cursorOf({ since, begun, at: time, key: last.key }), isLast: false };
    },
    getMany: (ids) =>
      inPieces(ids, MOST_BYTES, async (some) => {
        const answer = await ordered.many("Reading tasks", some.filter(isTaskId));
        const there = answer && new Map(answer.map((one) => [one.key, one]));
        return there && some.map((id) => looked(there.get(id)));
      }),
  };
}

function looked(read: Read | undefined): Looked {
  return read ? { found: foundIn(read), chars: charsOf(read) } : { found: undefined, chars: 0 };
}

/**
 * Where a pass has come to: by time, behind a document (`at` its `writtenAt`), or at its beginning, with nothing but
 * `since`; by name, behind a document.
 */
interface Place {
  readonly since?: string;
  readonly begun?: string;
  readonly at?: string;
  readonly key?: string;
}

function cursorOf({ since, begun, at, key }: Place): string {
  if (since === undefined) return ["name", begun, key].join(":");
  return ["since", since, ...(begun === undefined ? [] : [begun, at, key])].join(":");
}

const TIME = "(\\d{1,12}\\.\\d{9})";
const BY_NAME = new RegExp(`^name:${TIME}:(.+)$`, "s");
const BY_TIME = new RegExp(`^since:${TIME}(?::${TIME}:${TIME}:(.+))?$`, "s");

function readCursor(cursor: string): Place {
  const named = BY_NAME.exec(cursor);
  if (named) return { begun: named[1] as string, key: named[2] as string };
  const [, since, begun, at, key] = BY_TIME.exec(cursor) ?? [];
  if (since === undefined)
    throw new PawlError(
      "input_invalid",
      `${JSON.stringify(cursor.slice(0, 200))} is not a cursor of changes`,
    );
  if (begun === undefined || at === undefined || key === undefined) return { since };
  return { since, begun, at, key };
}

function earlier(time: string, seconds: number): string {
  const [whole, nanos] = time.split(".");
  return `${Math.max(0, Number(whole) - seconds)}.${nanos}`;
}
