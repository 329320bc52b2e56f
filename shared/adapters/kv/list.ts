import { PawlError } from "../../errors/errors.ts";
import { isListed, type TaskFilter, type TaskPage, type Unread } from "../../ports/store.ts";
import type { Task } from "../../task/document.ts";
import { type Bucket, MOST_CHARS, SHARED, taskIdOf, taskKey } from "./bucket.ts";
import type { Scanned } from "./scan.ts";

/** A page that looks for what is rare ends after so many documents, and is gone on with by its cursor. */
const MOST_SEEN = 10_000;

/** A bucket's documents from before a revision, or from its end on, the last written first. `share`: of how many buckets that are read at once. */
export type Newest = (before: number | undefined, size: number, share: number) => AsyncGenerator<Scanned>;

/** Looked through at once, of what else there is too: keys only. */
const MOST_KEYS = 20_000;
/** Revisions that are looked through first: one in several is a document's, as those that it replaced are gone. */
const SPAN = 200;
/** Of what lies between documents, so much is read along with them rather than each document by itself. */
const MOST_BETWEEN = 100_000;

/**
 * The bucket's stream has the documents in the order of their last writes: it is looked through from its end, piece by piece,
 * and what is found is read as it is asked for. Nothing is asked that the server would count the bucket for.
 */
export function newestOf(bucket: Bucket): Newest {
  const what = "Listing tasks";
  return async function* (before, first, share) {
    const end = before === undefined ? (await bucket.info(what)).state.last_seq : before - 1;
    for (let to = end, span = Math.max(first, SPAN), size = first; to > 0; ) {
      const from = Math.max(1, to - span + 1);
      const all = await keysIn(bucket, what, from, to);
      // Too much to be held at once: a smaller piece, the newest part of it.
      if (!all) {
        span = Math.ceil((to - from + 1) / 8);
        continue;
      }
      for (let at = 0; at < all.length; size *= 2) {
        const part = partOf(all, at, size, MOST_CHARS / share);
        yield* await documentsOf(bucket, what, part);
        at += part.length;
      }
      to = from - 1;
      span *= 2;
    }
  };
}

/** What was written last in this range, the newest first; none where it is too much. */
async function keysIn(
  bucket: Bucket,
  what: string,
  from: number,
  to: number,
): Promise<Scanned[] | undefined> {
  const keys: Scanned[] = [];
  const range = { from, to, keysOnly: true, markers: false, limit: MOST_KEYS + 1 };
  for await (const one of bucket.scan(what, [], range)) keys.push(one);
  return keys.length > MOST_KEYS ? undefined : keys.reverse();
}

const isDocument = ({ key }: Scanned) => key.startsWith(taskKey(""));

/** From there on so many documents, with what lies between them: as much as may be held at once. */
function partOf(all: readonly Scanned[], at: number, size: number, most: number): readonly Scanned[] {
  let to = at;
  for (let count = 0, bytes = 0; to < all.length && count < size; to++) {
    const one = all[to] as Scanned;
    if (!isDocument(one)) continue;
    bytes += one.bytes;
    if (bytes > most && count > 0) break;
    count++;
  }
  return all.slice(at, to);
}

/** Each as it is by now, at the place where it was seen. */
async function documentsOf(bucket: Bucket, what: string, part: readonly Scanned[]): Promise<Scanned[]> {
  const documents = part.filter(isDocument);
  const bytesOf = (some: readonly Scanned[]) => some.reduce((sum, { bytes }) => sum + bytes, 0);
  const found = new Map<string, Scanned>();
  const [newest, oldest] = [documents[0], documents.at(-1)];
  if (newest && oldest && bytesOf(part) - bytesOf(documents) <= MOST_BETWEEN) {
    const range = { from: oldest.revision, to: newest.revision, atOnce: part.length };
    for await (const one of bucket.scan(what, [], range)) found.set(one.key, one);
  }
  // One that was written anew meanwhile is further on; nobody who looks for the newest shall miss it.
  const others = documents.map(({ key }) => key).filter((key) => !found.has(key));
  for await (const picked of bucket.pick(what, others))
    for (const [key, one] of picked.found) found.set(key, one);
  return documents.flatMap((seen) => {
    const text = found.get(seen.key)?.text;
    return text ? [{ ...seen, text }] : [];
  });
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
