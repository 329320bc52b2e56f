import { PawlError } from "../../errors/errors.ts";
import { isListed, type TaskFilter, type TaskPage, type Unread } from "../../ports/store.ts";
import type { Task } from "../../task/document.ts";
import { type Bucket, MOST_CHARS, SHARED, taskIdOf } from "./bucket.ts";
import type { Scanned } from "./scan.ts";

/** A page that looks for what is rare ends after so many documents, and is gone on with by its cursor. */
const MOST_SEEN = 10_000;

/** A bucket's documents from before a revision, or from its end on, the last written first. `share`: of how many buckets that are read at once. */
export type Newest = (before: number | undefined, size: number, share: number) => AsyncGenerator<Scanned>;

/** The bucket's stream has the documents in the order of their last writes: it is read from its end, piece by piece. */
export function newestOf(bucket: Bucket): Newest {
  const what = "Listing tasks";
  return async function* (before, first, share) {
    const end = before === undefined ? (await bucket.info(what)).state.last_seq : before - 1;
    for (let to = end, size = first; to > 0; ) {
      const from = Math.max(1, to - size + 1);
      const piece = await pieceOf(bucket, what, from, to, MOST_CHARS / share);
      // Too much to be held at once: a smaller piece, the newest part of it.
      if (!piece) {
        size = Math.ceil((to - from + 1) / 8);
        continue;
      }
      yield* piece.reverse();
      to = from - 1;
      size *= 2;
    }
  };
}

/** The tasks last written in this range; none where they are too much to be held at once. */
async function pieceOf(
  bucket: Bucket,
  what: string,
  from: number,
  to: number,
  most: number,
): Promise<Scanned[] | undefined> {
  const piece: Scanned[] = [];
  let chars = 0;
  for await (const entry of bucket.scan(what, ["task.*"], { from, to })) {
    piece.push(entry);
    chars += entry.text().length;
    if (chars > most && piece.length > 1) return undefined;
  }
  return piece;
}

/** One of the buckets that a list is made of. */
export interface Source {
  /** Empty where it is the only one. */
  readonly name: string;
  readonly newest: Newest;
  readonly found: Bucket["found"];
  /** Where the page begins: its end where it is left out. */
  readonly before: number | undefined;
}

/** A page of the documents of all sources, the last written first, by their server's clock. */
export async function listed(
  sources: readonly Source[],
  filter: TaskFilter,
  limit: number,
): Promise<TaskPage> {
  const tasks: Task[] = [];
  const unreadable: Unread[] = [];
  let seen = 0;
  let chars = 0;
  const size = Math.ceil(limit / sources.length);
  const fronts = await Promise.all(
    sources.map(async (source) => {
      const entries = source.newest(source.before, size, sources.length);
      return { source, entries, next: await entries.next(), before: source.before };
    }),
  );
  const pageOf = (isCut: boolean): TaskPage => ({
    tasks,
    looked: seen,
    ...(isCut && { cursor: fronts.flatMap((one) => cursorOf(one.source, one.before) ?? []).join(",") }),
    ...(unreadable.length > 0 && { unreadable }),
  });
  for (;;) {
    const [front] = fronts
      .filter(({ next }) => !next.done)
      .toSorted((a, b) => (b.next.value as Scanned).writtenAt - (a.next.value as Scanned).writtenAt);
    if (!front) return pageOf(false);
    const entry = front.next.value as Scanned;
    front.before = entry.revision;
    const found = front.source.found(taskIdOf(entry.key), entry.revision, entry.text());
    chars += entry.text().length;
    if ("unreadable" in found) unreadable.push({ key: found.key, why: found.unreadable });
    else if (isListed(found.task, filter)) tasks.push(found.task);
    if (tasks.length === limit || ++seen === MOST_SEEN || chars > MOST_CHARS) return pageOf(true);
    front.next = await front.entries.next();
  }
}

/** What was not read at all is read from its end by the next page too: what is written meanwhile comes then. */
function cursorOf({ name }: Source, before: number | undefined): string | undefined {
  if (before === undefined) return undefined;
  return name === "" ? String(before) : `${name}=${before}`;
}

/** The place in one bucket. */
export function readPlace(cursor: string): number {
  if (/^[1-9]\d{0,14}$/.test(cursor)) return Number(cursor);
  throw wrongCursor(cursor);
}

/** The places in several, by their names. A place in one bucket is of before agents had theirs: what they have is all to come. */
export function readPlaces(cursor: string): ReadonlyMap<string, number> {
  if (/^\d+$/.test(cursor)) return new Map([[SHARED, readPlace(cursor)]]);
  const places = cursor.split(",").map((one): [string, number] => {
    const [, name, before] = /^([a-z0-9-]+)=([1-9]\d{0,14})$/.exec(one) ?? [];
    if (name === undefined) throw wrongCursor(cursor);
    return [name, Number(before)];
  });
  return new Map(places);
}

function wrongCursor(cursor: string): PawlError {
  return new PawlError("input_invalid", `${JSON.stringify(cursor.slice(0, 200))} is not a valid cursor`);
}
