import { comparable, partId } from "./codec.ts";

/** A document by its collection and id, as it was seen. */
export interface Seen {
  readonly id: string;
  readonly revision: string;
}

/** What the removal asks of Firestore, whichever way it is reached. */
export interface Removal {
  /** Tasks whose time has passed, the longest first. */
  expired(now: number, limit: number): Promise<readonly Seen[]>;
  /** Removes these documents, if all of them are as they were seen, and marks their tasks as removed, in one commit. */
  bury(tasks: readonly Seen[]): Promise<"written" | "refused">;
  /** Tasks that are marked as removed. */
  removed(limit: number): Promise<readonly Seen[]>;
  heads(taskIds: readonly string[]): Promise<readonly Seen[]>;
  /** In the order of their ids. */
  parts(taskIds: readonly string[], limit: number, after?: string): Promise<readonly Seen[]>;
  /** Those of Pawl's own, in the order of their names. */
  texts(limit: number, after?: string): Promise<readonly Seen[]>;
  /** Removes all of these, or nothing where one of them is not as it was seen. */
  remove(what: Owned): Promise<"written" | "refused">;
}

export interface Owned {
  readonly heads?: readonly Seen[];
  readonly parts?: readonly Seen[];
  readonly marks?: readonly Seen[];
  readonly texts?: readonly Seen[];
}

/** A query may name 30 values. */
const AT_ONCE = 30;
/** A commit takes at least 500 writes. */
const PAGE = 300;

/**
 * Removes tasks that have expired, and all they own. A commit is all or nothing, but a task may own more than fits one;
 * so the first removes the document, as it was seen, and leaves a mark with the task's id. The mark goes last. Killed in
 * between, the next call finds the mark.
 *
 * A task of the same id may be submitted as soon as the document is gone. What it owns was written after the mark, and
 * is left alone: revisions are times of the server, which are the same for all documents.
 */
export async function expireTasks(removal: Removal, now: number, limit: number): Promise<number> {
  let buried = 0;
  const expired = await removal.expired(now, limit);
  for (let i = 0; i < expired.length; i += AT_ONCE) {
    const some = expired.slice(i, i + AT_ONCE);
    if ((await removal.bury(some)) === "written") buried += some.length;
    // One of the tasks was redriven, or removed by another sweep: each on its own.
    else for (const one of some) if ((await removal.bury([one])) === "written") buried++;
  }
  const marks = await removal.removed(Math.max(limit, AT_ONCE));
  for (let i = 0; i < marks.length; i += AT_ONCE) await clear(removal, marks.slice(i, i + AT_ONCE));
  return buried;
}

/** What these tasks owned, and then their marks. Where another sweep is at it too, one of both gets through. */
async function clear(removal: Removal, marks: readonly Seen[]): Promise<void> {
  const ids = marks.map(({ id }) => id);
  const until = new Map(marks.map(({ id, revision }) => [id, revision]));
  /** A part's id begins with its task's, which has no dot. */
  const isOld = ({ id, revision }: Seen) =>
    comparable(revision) < comparable(until.get(id.split(".")[0] as string) ?? "");
  for await (const page of partsOf(removal, ids)) {
    const parts = page.filter(isOld);
    if (parts.length > 0 && (await removal.remove({ parts })) === "refused") return;
  }
  const heads = (await removal.heads(ids)).filter(isOld);
  await removal.remove({ heads, marks });
}

function partsOf(removal: Removal, taskIds: readonly string[]): AsyncGenerator<readonly Seen[]> {
  return pagesOf((after) => removal.parts(taskIds, PAGE, after));
}

async function* pagesOf(
  read: (after: string | undefined) => Promise<readonly Seen[]>,
): AsyncGenerator<readonly Seen[]> {
  for (let after: string | undefined, isLeft = true; isLeft; ) {
    const page = await read(after);
    yield page;
    isLeft = page.length === PAGE;
    after = page.at(-1)?.id;
  }
}

/** Documents that were written anew meanwhile stay. */
export async function removeParts(
  removal: Removal,
  taskId: string,
  isOld: (name: string) => boolean,
): Promise<void> {
  for await (const page of partsOf(removal, [taskId])) {
    const parts = page.filter(({ id }) => isOld(id.slice(partId(taskId, "").length)));
    await removeAsSeen(parts, (some) => removal.remove({ parts: some }));
  }
}

/** Documents that were written anew meanwhile stay. */
export async function removeTexts(removal: Removal, isOld: (name: string) => boolean): Promise<void> {
  for await (const page of pagesOf((after) => removal.texts(PAGE, after))) {
    const texts = page.filter(({ id }) => isOld(id));
    await removeAsSeen(texts, (some) => removal.remove({ texts: some }));
  }
}

async function removeAsSeen(
  some: readonly Seen[],
  remove: (some: readonly Seen[]) => ReturnType<Removal["remove"]>,
): Promise<void> {
  if (some.length > 0 && (await remove(some)) === "refused") for (const one of some) await remove([one]);
}
