import type { Revision, StoredRecord, TaskStore, WriteResult } from "../../ports/store.ts";
import { isTaskId } from "../../task/names.ts";
import { type Bucket, headKey, leaseKey, partKey, taskKey } from "./bucket.ts";
import type { Scanned } from "./scan.ts";

const WHAT = "Removing expired tasks";
/** What keys begin with that belong to a task. */
const OWNED = new Set(["task", "journal", "part", "lease", "due"]);
const WALK = "expiry";
const ANEW = 86_400_000;
/** Keys that are looked at together, and in one call. */
const BATCH = 200;
const MOST = 5_000;
const AT_ONCE = 16;

/** How far the bucket was walked: what is old and lives on is passed once a day, not in every call. */
export interface Walk {
  readonly next: number;
  readonly begun: number;
  /** It has come to what is too young to have expired. */
  readonly isThrough: boolean;
}

/** Where to go on: from the front, once a day, and where what was kept can't be read, which an agent's bucket has in its hand. */
export function walkFrom(kept: string | undefined, now: number): Pick<Walk, "next" | "begun"> {
  const last = kept === undefined ? undefined : readWalk(kept);
  const isAnew = !last || (last.isThrough && Math.abs(now - last.begun) >= ANEW);
  return isAnew ? { next: 1, begun: now } : last;
}

function readWalk(text: string): Walk | undefined {
  try {
    const { next, begun, isThrough } = JSON.parse(text) as Partial<Record<keyof Walk, unknown>>;
    const isRead = Number.isSafeInteger(next) && (next as number) > 0 && Number.isFinite(begun);
    return isRead
      ? { next: next as number, begun: begun as number, isThrough: isThrough === true }
      : undefined;
  } catch {
    return undefined;
  }
}

interface Records {
  get(name: string): Promise<StoredRecord | undefined>;
  put(name: string, text: string, seen?: Revision): Promise<WriteResult>;
}

/**
 * Removes tasks that have expired, and all they own. The bucket's stream has its values in the order of their last
 * writes, and a finished task is written last when it ends: so what has expired stands at the front, beside what is as
 * old and lives on.
 *
 * A document goes first, and only as it was seen; then what it owned, and of that only what is older than the retention:
 * a task of the same id that was submitted a moment ago has nothing so old. Killed in between, the rest is found by the
 * walk itself, anew every day: it is old, and its document is gone.
 */
export function expirer(bucket: Bucket, records: Records, retention: number): TaskStore["expire"] {
  return async (now, limit) => {
    const kept = await records.get(WALK);
    const walked = walkFrom(kept?.text, now);
    const { begun } = walked;
    const oldest = now - retention;
    let { next } = walked;
    let removed = 0;
    // One look is enough mostly: what comes first is too young, and so is all behind it.
    let isThrough = ((await bucket.writtenFrom(WHAT, next)) ?? now) > oldest;
    for (let looked = 0; !isThrough && removed < limit && looked < MOST; looked += BATCH) {
      const { batch, young } = await oldFrom(bucket, next, oldest);
      const done = await remove(bucket, batch, now, limit - removed);
      isThrough = batch.length < BATCH && done.upTo === batch.at(-1)?.revision;
      removed += done.removed;
      next = (isThrough && young) || (done.upTo ?? next - 1) + 1;
    }
    const walk: Walk = { next, begun, isThrough };
    if (JSON.stringify(walk) !== kept?.text) await records.put(WALK, JSON.stringify(walk), kept?.revision);
    return removed;
  };
}

/** And the first that is too young, if it was seen: from there on nothing is old yet. */
async function oldFrom(
  bucket: Bucket,
  from: number,
  oldest: number,
): Promise<{ batch: Scanned[]; young?: number }> {
  const batch: Scanned[] = [];
  for await (const one of bucket.scan(WHAT, [], { from, keysOnly: true })) {
    if (one.writtenAt > oldest) return { batch, young: one.revision };
    if (OWNED.has(one.key.split(".", 1)[0] as string)) batch.push(one);
    if (batch.length === BATCH) break;
  }
  return { batch };
}

/** Of what is old: the documents that have expired, and whatever has no document. Up to where it was done. */
async function remove(
  bucket: Bucket,
  batch: readonly Scanned[],
  now: number,
  limit: number,
): Promise<{ removed: number; upTo?: number }> {
  const documents = await documentsOf(bucket, batch);
  /** A document that has expired as it stands there; or something whose document is gone. */
  const isOver = ({ key, revision }: Scanned): boolean => {
    const id = ownerOf(key);
    const there = documents.get(id);
    // Earlier versions kept reports and tokens as parts of ids that no task can have.
    if (!there) return isTaskId(id);
    return there.revision === revision && (there.expiresAt ?? now + 1) <= now;
  };
  const over = new Set<string>();
  const old: Scanned[] = [];
  for (const one of batch) {
    if (isOver(one)) over.add(ownerOf(one.key));
    if (over.size > limit) break;
    old.push(one);
  }
  const upTo = old.at(-1)?.revision;
  if (upTo === undefined) return { removed: 0 };
  const gone = await buried(bucket, old.filter(isOver), documents);
  const isLeft = ({ key }: Scanned) =>
    gone.has(ownerOf(key)) && !(key.startsWith("task.") && documents.has(ownerOf(key)));
  const left = new Set(old.filter(isLeft).map(({ key }) => groupOf(key)));
  const owned = [...gone].flatMap((id) => [headKey(id), leaseKey(id), partKey(id, "*")]);
  await inParallel(owned, async (filter) => {
    if (await bucket.hasUpTo(WHAT, filter, upTo)) left.add(filter);
  });
  await inParallel([...left], (filter) => bucket.purge(WHAT, filter, upTo));
  return { removed: gone.size, upTo };
}

interface Document {
  readonly revision: number;
  readonly expiresAt?: number;
}

async function documentsOf(
  bucket: Bucket,
  batch: readonly Scanned[],
): Promise<ReadonlyMap<string, Document>> {
  const documents = new Map<string, Document>();
  const ids = new Set(batch.map(({ key }) => ownerOf(key)).filter(isTaskId));
  for await (const { found } of bucket.pick(WHAT, [...ids].map(taskKey))) {
    for (const { key, revision, text } of found.values()) {
      const there = bucket.found(ownerOf(key), revision, text());
      // What can't be read stays, whatever it is.
      const hasEnded = "task" in there && "expiresAt" in there.task;
      documents.set(ownerOf(key), { revision, ...(hasEnded && { expiresAt: there.task.expiresAt }) });
    }
  }
  return documents;
}

/** Removes the documents of these, each as it was seen, and says whose is gone: the rest of it may go too. */
async function buried(
  bucket: Bucket,
  over: readonly Scanned[],
  documents: ReadonlyMap<string, Document>,
): Promise<Set<string>> {
  const gone = new Set<string>();
  const purged: string[] = [];
  await inParallel(over, async ({ key, revision }) => {
    const isDocument = documents.has(ownerOf(key));
    if (isDocument && (await bucket.purge(WHAT, key, revision)) > 0) purged.push(key);
    if (!isDocument) gone.add(ownerOf(key));
  });
  for await (const { keys, found } of bucket.pick(WHAT, purged)) {
    // In a replicated bucket a redrive may have been let through before the purge, and stored after it.
    for (const key of keys) if (!found.has(key)) gone.add(ownerOf(key));
  }
  return gone;
}

/** The id is the last token of every key but a part's. */
function ownerOf(key: string): string {
  const tokens = key.split(".");
  return (tokens[0] === "part" ? tokens[1] : tokens.at(-1)) ?? "";
}

/** All parts of a task are purged in one go. */
function groupOf(key: string): string {
  return key.startsWith("part.") ? partKey(ownerOf(key), "*") : key;
}

async function inParallel<T>(items: readonly T[], work: (item: T) => Promise<unknown>): Promise<void> {
  for (let i = 0; i < items.length; i += AT_ONCE) await Promise.all(items.slice(i, i + AT_ONCE).map(work));
}
