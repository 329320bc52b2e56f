import { isPawlError, isUnsound } from "../../errors/errors.ts";
import type { Deps } from "../../ports/deps.ts";
import { CLOCK_IS_OFF, CLOCKS_AT_WORST } from "../../settings/clocks.ts";
import type { Task } from "../../task/document.ts";
import { stampHash, UNKNOWN } from "./open-task.ts";
import { leftOpen } from "./open-tasks.ts";
import { remember } from "./remembered.ts";
import type { QueueMark, ReportList } from "./reports.ts";
import type { Range } from "./sequences.ts";

/** What shows that a task which looks open was further already; undefined where nothing does. */
export type Evidence = (task: Task) => Promise<string | undefined>;

/**
 * For whoever is about to start a task that nobody carries: its document may have been put back from a backup, and the
 * work be done. Its journal knows its last holder; the last report knows which sequences were explained, and which tasks
 * were open. It costs a read or three, and only of what is stuck.
 */
export function evidence(deps: Deps): Evidence {
  // As it was left, or its copy: a list that somebody removed or changed must not hide what is done.
  let asked: Promise<ReportList> | undefined;
  const ledgerNow = () => {
    asked ??= remember(deps).then(({ ledger }) => ledger);
    return asked;
  };
  return async (task) => {
    const journal = isAccepted(task) ? undefined : await byJournal(deps, task);
    if (journal !== undefined) return journal;
    const ledger = await ledgerNow();
    return isAccepted(task, ledger.at) ? undefined : byReport(deps, task, ledger);
  };
}

/**
 * A person has looked at it, and says that it is right as it is: against the journal, or against a report that was made
 * before. A later report has seen what was accepted, and what became of it.
 */
export const isAccepted = ({ history }: Task, report = Number.NEGATIVE_INFINITY) =>
  history.some(({ event, at }) => event === "accept" && at > report - CLOCKS_AT_WORST);

async function byJournal({ store }: Deps, { id, createdAt, fence }: Task): Promise<string | undefined> {
  try {
    const head = (await store.getHead(id))?.head;
    if (!head || head.born !== createdAt || head.fence <= fence) return undefined;
    return `its journal was opened under fence ${head.fence}, and its document says ${fence}`;
  } catch (error) {
    if (isUnsound(error) || isPawlError(error, "journal_altered")) return error.message;
    throw error;
  }
}

async function byReport(
  deps: Deps,
  task: Task,
  { at, marks, open }: ReportList,
): Promise<string | undefined> {
  if (at === undefined) return undefined;
  const when = new Date(at).toISOString();
  if ((task.state === "dispatched" || task.state === "running") && task.seq !== undefined) {
    const mark = marks[task.queue];
    if (mark && wasSettled(mark, task.seq, task.updatedAt))
      return `the report of ${when} found sequence ${task.seq} of ${task.queue} settled`;
  }
  if (!open || task.createdAt > at - CLOCK_IS_OFF) return undefined;
  const stamp = await leftOpen({ deps }, open, task.id);
  if (stamp === false) return `it was created before the report of ${when}, which found it over`;
  return stamp !== undefined && lacks(task, stamp)
    ? `it lacks the write that the report of ${when} saw last`
    : undefined;
}

/** In the stream as it was then: sequences of an earlier one of its name were others. */
const wasSettled = ({ createdAt, upTo, open, unexplained = [] }: QueueMark, seq: number, updatedAt: number) =>
  updatedAt >= createdAt && seq <= upTo && !isIn(open, seq) && !isIn(unexplained, seq);

/** Whether a document has all of its history, and this write is not in it: a dead letter that was redriven has it. */
function lacks({ stamp, counts, history }: Task, write: number): boolean {
  // Nobody could read it then, or believe it.
  if (write === UNKNOWN) return false;
  const isWhole = (counts?.writes ?? Infinity) <= history.length;
  return isWhole && ![stamp, ...history.map((one) => one.stamp)].some((one) => stampHash(one) === write);
}

export const isIn = (ranges: readonly Range[], seq: number) =>
  ranges.some(([from, to]) => seq >= from && seq <= to);
