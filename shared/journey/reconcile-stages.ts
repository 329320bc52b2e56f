import type { TaskFilter } from "../ports/store.ts";
import type { State, Task } from "../task/document.ts";
import type { Account } from "./reconcile-account.ts";
import { openPage } from "./reconcile-books.ts";
import type { Looking } from "./reconcile-look.ts";
import type { Pace } from "./reconcile-pace.ts";
import type { Stage } from "./reconcile-progress.ts";
import { dispatchStuck, lookForLag, lookIfMended, repeatAck } from "./reconcile-repair.ts";

/** What every stage works with. */
export interface Job {
  readonly pace: Pace;
  readonly account: Account;
  readonly looking: Looking;
  /** Whether a page is to be cut off, to keep what was found out: the time is over, or it is a while since the last save. */
  isUrgent(): boolean;
  readonly repair: boolean;
  readonly lanes: Readonly<Record<string, number>>;
  readonly onProgress: (documents: number) => void;
}

/** Where the next page begins, of a stage that is not over; without a cursor from the stage's beginning. */
export type Step = { readonly cursor?: string | undefined } | "over";

type Page = (job: Job, cursor: string | undefined) => Promise<Step>;

/** How far back a document may have been written by a clock that is behind. */
const CLOCKS_APART = 600_000;
const LIVE: readonly State[] = ["scheduled", "dispatched", "running", "waiting", "in_doubt"];

/**
 * One page of each stage: it does a bounded piece of work, and what it did is whole when it returns or throws. A page
 * that was cut off may be done again: documents know whether they were looked at, and everything else is counted after
 * it was done.
 */
export const pages: Readonly<Record<Exclude<Stage, "report">, Page>> = {
  /** What lies in the streams. */
  books: async ({ pace, account }, cursor = "0:1") => {
    const [queue, seq] = cursor.split(":").map(Number) as [number, number];
    const next = await openPage(pace, account.plan, account.books, { queue, seq });
    return next ? { cursor: `${next.queue}:${next.seq}` } : "over";
  },
  /** What changed since the last time, the newest first. */
  documents: (job, cursor) => {
    const { since } = job.account.plan;
    const isNew = (task: Task) => task.updatedAt >= since;
    return scan(job, {}, cursor, {
      visit: async (task) => isNew(task) && job.looking.at(task),
      isLast: (tasks) => !tasks.every(isNew),
    });
  },
  /** Older documents that are not over: they may be stuck. */
  live: async (job, cursor) => {
    const { since } = job.account.plan;
    if (since <= 0) return "over";
    return scan(job, { states: LIVE }, cursor, {
      visit: async (task) => task.updatedAt < since && job.looking.at(task),
    });
  },
  /** A document that was written while they were read may have moved past the reader: the newest once more. */
  newest: (job, cursor) => {
    const since = job.account.plan.at - CLOCKS_APART;
    return scan(job, {}, cursor, {
      visit: lookAgain(job),
      isLast: (tasks) => (tasks.at(-1)?.updatedAt ?? since) < since,
    });
  },
  /** Only when something is still unexplained, all of them. */
  everything: async (job, cursor) => {
    const isExplained = [...job.account.books.values()].every((book) => book.counts().unexplained === 0);
    return isExplained ? "over" : scan(job, {}, cursor, { visit: lookAgain(job) });
  },
  /** Which of the settled messages that were there are there still. */
  lags: ({ pace, account }, cursor) => one(cursor, (at) => lookForLag(pace, account, at)),
  acks: async ({ pace, account, repair }, cursor) =>
    repair ? one(cursor, (at) => repeatAck(pace, account, at)) : "over",
  stuck: async ({ pace, account, repair, lanes }, cursor) =>
    repair ? one(cursor, (at) => dispatchStuck(pace, account, lanes, at)) : "over",
  /** Which of the stuck tasks go on. */
  mended: async ({ pace, account, repair }, cursor) =>
    repair ? one(cursor, (at) => lookIfMended(pace, account, at)) : "over",
};

interface Scan {
  /** True when it took more than the document. */
  visit(task: Task): Promise<boolean>;
  isLast?(tasks: readonly Task[]): boolean;
}

/**
 * A page of documents. It is cut off only after a document that was looked at anew, so that every slice brings it
 * forward; those before it are known when the page is read again.
 */
async function scan(
  job: Job,
  filter: TaskFilter,
  cursor: string | undefined,
  { visit, isLast = () => false }: Scan,
): Promise<Step> {
  const { pace, account } = job;
  const { store } = pace.deps;
  const page = await store.list(filter, store.pageSize, cursor);
  for (const task of page.tasks) {
    const isNew = await visit(task);
    if (isNew && job.isUrgent()) return { cursor };
  }
  job.onProgress(account.documents);
  return page.cursor === undefined || isLast(page.tasks) ? "over" : { cursor: page.cursor };
}

/** What was not looked at counts in full, if it is of the period; of the rest only what it settled. */
function lookAgain({ account, looking }: Job): Scan["visit"] {
  return (task) => (task.updatedAt >= account.plan.since ? looking.at(task) : looking.settle(task));
}

/** One of a list, by its number. */
async function one(cursor: string | undefined, work: (at: number) => Promise<boolean>): Promise<Step> {
  const at = Number(cursor ?? 0);
  return (await work(at)) ? { cursor: String(at + 1) } : "over";
}
