import type { Found } from "../ports/store.ts";
import { CLOCK_IS_OFF } from "../settings/clocks.ts";
import type { Account } from "./account.ts";
import { openPage } from "./books/books.ts";
import type { OpenTask } from "./books/open-task.ts";
import { openLines, storeOpen } from "./books/open-tasks.ts";
import { found } from "./findings/found.ts";
import type { Looking } from "./look/look.ts";
import { askHolder, dispatchStuck, lagSince, lookForLag, lookIfMended, repeatAck } from "./look/repair.ts";
import type { Pace, Step } from "./pace.ts";
import type { Stage } from "./progress.ts";

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

type Page = (job: Job, cursor: string | undefined) => Promise<Step>;

/**
 * One page of each stage: it does a bounded piece of work, and what it did is whole when it returns or throws. A page
 * that was cut off may be done again: documents know whether they were looked at, and everything else is counted after
 * it was done.
 */
export const pages: Readonly<Record<Exclude<Stage, "report">, Page>> = {
  /** What lies in the streams. */
  books: async ({ pace, account }, cursor = "0:1") => {
    const [queue, seq] = cursor.split(":").map(Number) as [number, number];
    const page = await openPage(pace, account.plan, account.books, { queue, seq });
    if (!page) return "over";
    await lagSince(pace, account, page.stream, page.explained);
    return { cursor: `${page.next.queue}:${page.next.seq}` };
  },
  /** What was written since the last time, in the store's order: what is written meanwhile comes at its end. */
  documents: (job, cursor) => scan(job, cursor ?? firstCursor(job.account.plan.after)),
  /** What the last report left open and nobody has written since; what is gone of it. */
  open: (job, cursor = "0:0") => askOpen(job, cursor),
  /**
   * Only when something is still unexplained, or nobody knows all that was open, all of them: a task that is left out here
   * would be over by this report.
   */
  everything: async (job, cursor) => {
    const isExplained =
      !job.looking.lacksOpen &&
      [...job.account.books.values()].every((book) => book.counts().unexplained === 0);
    return isExplained ? "over" : scan(job, cursor ?? firstCursor(undefined));
  },
  /** Holders that did not answer are asked once more, a lease later: one that blocks its process is no dead one. */
  unheld: ({ pace, account }, cursor) => askHolder(pace, account, Number(cursor ?? 0)),
  /** Which of the settled messages that were there are there still. */
  lags: ({ pace, account }, cursor) => one(cursor, (at) => lookForLag(pace, account, at)),
  acks: async ({ pace, account, repair }, cursor) =>
    repair && !account.plan.isClockOff ? one(cursor, (at) => repeatAck(pace, account, at)) : "over",
  stuck: async ({ pace, account, repair, lanes }, cursor) =>
    repair && !account.plan.isClockOff
      ? one(cursor, (at) => dispatchStuck(pace, account, lanes, at))
      : "over",
  /** Which of the stuck tasks go on. */
  mended: async ({ pace, account, repair }, cursor) =>
    repair && !account.plan.isClockOff ? one(cursor, (at) => lookIfMended(pace, account, at)) : "over",
};

/**
 * All documents there are, and then what was written since the plan was made; or only what was written after a place.
 * A cursor says which of the two it is in.
 */
function firstCursor(after: string | undefined): string {
  return after === undefined ? "all:" : `new:${after}`;
}

/** Documents that are looked at together: what is beside them is read at once. */
const AT_ONCE = 16;

/** A page of documents. Where it is cut off, it is read again, and those that were looked at are known. */
async function scan(job: Job, cursor: string): Promise<Step> {
  const { pace, account } = job;
  const { store } = pace.deps;
  const [phase, place] = [cursor.slice(0, 3), cursor.slice(4)];
  const page = await store.changes(place || undefined, store.pageSize);
  if (!(await lookAtAll(job, page.documents))) return { cursor };
  job.onProgress(account.documents);
  if (!page.isLast) return { cursor: `${phase}:${page.cursor}` };
  return phase === "all" ? { cursor: `new:${account.plan.position}` } : "over";
}

/** False when it was cut off: only after one that was looked at anew, so that every slice brings it forward. */
async function lookAtAll(job: Job, documents: readonly Found[]): Promise<boolean> {
  for (let i = 0; i < documents.length; i += AT_ONCE) {
    const looked = await job.looking.at(documents.slice(i, i + AT_ONCE));
    await storeOpen(job.pace, job.account);
    if (looked > 0 && i + AT_ONCE < documents.length && job.isUrgent()) return false;
  }
  return true;
}

/** Tasks that are asked for at once. */
const ASKED = 200;

/** A page of what the last report left open: a part, or what is left of it from a line on (`part:line`). */
async function askOpen(job: Job, cursor: string): Promise<Step> {
  const { pace, account } = job;
  const { open } = account.plan;
  const [part, from] = cursor.split(":").map(Number) as [number, number];
  if (!open || part >= open.parts.length) return "over";
  const next = { cursor: `${part + 1}:0` };
  const lines = await openLines(pace, open, part);
  if ("finding" in lines) {
    account.findings = found(account.findings, lines.finding);
    return next;
  }
  for (let line = from; line < lines.tasks.length; line += ASKED) {
    const isCut = line > from && job.isUrgent();
    if (isCut || !(await askFor(job, lines.tasks.slice(line, line + ASKED))))
      return { cursor: `${part}:${line}` };
  }
  return next;
}

/** False when it was cut off. */
async function askFor(job: Job, tasks: readonly OpenTask[]): Promise<boolean> {
  const { pace, account, looking } = job;
  const asked = tasks.filter(({ id }) => !looking.isKnown(id));
  const there: Found[] = [];
  for (let i = 0; i < asked.length; ) {
    const answers = await pace.deps.store.getMany(asked.slice(i).map(({ id }) => id));
    for (const [j, answer] of answers.entries()) {
      const task = asked[i + j] as OpenTask;
      if (answer) there.push(answer);
      // A dead letter whose time has come was removed, if only since the plan was made; nothing else ever is before a
      // report has seen it end.
      else if (task.expiresAt === 0 || task.expiresAt > pace.deps.clock.now() + CLOCK_IS_OFF)
        account.findings = missed(account, task);
    }
    i += Math.max(1, answers.length);
  }
  return lookAtAll(job, there);
}

function missed({ findings, seen }: Account, { id, agent, state }: OpenTask): Account["findings"] {
  seen.add(id);
  const detail = `the last report left it ${state.replaceAll("_", " ")}, and there is no document of it`;
  return found(findings, { kind: "vanished", subject: id, agent, detail });
}

/** A page that deals with one entry of a list, by its number. */
async function one(cursor: string | undefined, work: (at: number) => Promise<boolean>): Promise<Step> {
  const at = Number(cursor ?? 0);
  return (await work(at)) ? { cursor: String(at + 1) } : "over";
}
