import type { Settlement, State, Task } from "../task/document.ts";
import { isPawlError, messageOf } from "../task/errors.ts";
import { countTask, examine, examineJournal } from "../task/examine.ts";
import { type Finding, type Findings, found } from "../task/findings.ts";
import type { Entry } from "../task/journal.ts";
import type { Live } from "../task/report.ts";
import { SeenHashes } from "../task/seen.ts";
import { redeliveryHorizon } from "../task/settings.ts";
import { pageName } from "../task/settled.ts";
import { ORPHAN_AFTER } from "../task/sweep.ts";
import { isFinal } from "../task/table.ts";
import { type Counting, NO_TALLY } from "../task/tally.ts";
import type { Deps } from "./deps.ts";
import { readJournal } from "./journal.ts";
import { type Books, isRewound, loadBooks, openBooks, storeBooks } from "./reconcile-books.ts";
import {
  keepProgress,
  type Lagging,
  NOTHING_YET,
  type Plan,
  type Progress,
  planOrResume,
} from "./reconcile-plan.ts";
import { hasMessage, isStranded } from "./sweep.ts";

/** How many documents are looked at between two savings of where it is; of many, a tenth of them. */
const SAVE_EVERY = 20_000;
const LIVE: readonly State[] = ["scheduled", "dispatched", "running", "waiting", "in_doubt"];

/** Everything that was found out, before it becomes a report. */
export interface Account {
  readonly plan: Plan;
  readonly books: Books;
  readonly tallies: Readonly<Record<string, Counting>>;
  readonly findings: Findings;
  readonly lagging: readonly Lagging[];
  readonly live: Live;
  readonly maxSettled: Readonly<Record<string, number>>;
  readonly documents: number;
}

interface AccountOptions {
  readonly saveEvery?: number;
  readonly plan?: Plan;
  readonly onProgress?: (documents: number) => void;
}

/**
 * Explains every sequence of every queue since the last time: streams, documents and consumers are asked on their own,
 * and must agree. Undefined when the time is over: what was found out is kept, and the next call goes on from there.
 */
export async function account(
  deps: Deps,
  stop: AbortSignal,
  { saveEvery = SAVE_EVERY, plan: given, onProgress = () => {} }: AccountOptions = {},
): Promise<Account | undefined> {
  const { progress, revision, isResumed } = given ? fresh(given) : await planOrResume(deps);
  const kept = isResumed ? await loadBooks(deps, progress) : undefined;
  // Without its books it begins anew, on the same plan.
  const begun: Progress = kept ? progress : { ...progress, stage: "documents", ...NOTHING_YET };
  const { plan } = begun;
  if (kept) deps.log("info", "reconcile.resumed", { documents: begun.documents });
  const books = kept ?? (await openBooks(deps, plan.queues));
  const looking = lookingAt(deps, plan, books, begun);
  const sequences = [...books.values()].reduce((sum, book) => sum + book.size, 0);
  const often = Math.max(saveEvery, sequences / 10);

  let cursor = kept ? begun.cursor : undefined;
  let saves = 0;
  let seen: string | undefined = revision;
  let last = begun.documents;
  const save = async (stage: Progress["stage"]) => {
    last = looking.documents();
    // Refused before: another one is at it, from the same plan.
    if (seen === undefined) return;
    const stored = await storeBooks(deps, books, saves++);
    const { cursor: _, ...rest } = looking.progress();
    seen = await keepProgress(deps, { ...rest, stage, books: stored, ...(cursor && { cursor }) }, seen);
  };

  for (let isLeft = begun.stage === "documents"; isLeft; ) {
    const page = await deps.store.list({}, deps.store.pageSize, cursor);
    const news = page.tasks.filter((task) => task.updatedAt >= plan.since);
    // One that was written by a clock that is behind may come up a second time.
    for (const task of news) if (!looking.hasSeen(task)) await looking.at(task);
    cursor = news.length < page.tasks.length ? undefined : page.cursor;
    isLeft = cursor !== undefined;
    onProgress(looking.documents());
    // The passes that follow are short, and begin anew when they are cut off: what came before them is kept.
    if (!isLeft || stop.aborted || looking.documents() - last >= often)
      await save(isLeft ? "documents" : "live");
    if (stop.aborted) return undefined;
  }
  const isOver = begun.stage === "done";
  // Older ones that are not over: they may be stuck.
  for (
    let isLeft = !isOver && plan.since > 0, next: string | undefined;
    isLeft;
    isLeft = next !== undefined
  ) {
    const page = await deps.store.list({ states: LIVE }, deps.store.pageSize, next);
    for (const task of page.tasks) if (task.updatedAt < plan.since) await looking.at(task);
    if (stop.aborted) return undefined;
    next = page.cursor;
  }
  if (!isOver && !(await lookAgain(deps, plan, books, looking, kept !== undefined, stop))) return undefined;
  const result = looking.result();
  // Before anything is mended: whoever goes on after a crash must still know what was found.
  if (!isOver && (result.lagging.length > 0 || result.findings.named.length > 0)) await save("done");
  return result;
}

/** A look back keeps nothing: not where it is, and no report. */
function fresh(plan: Plan): { progress: Progress; revision: undefined; isResumed: false } {
  const progress: Progress = { plan, stage: "documents", books: {}, ...NOTHING_YET };
  return { progress, revision: undefined, isResumed: false };
}

/** How far back a document may have been written by a clock that is behind. */
const CLOCKS_APART = 600_000;

/**
 * A document that was written while they were read may have moved past the reader; so the newest are read once more.
 * Only when something is still unexplained, all of them are. False when the time is over.
 */
async function lookAgain(
  deps: Deps,
  plan: Plan,
  books: Books,
  looking: Looking,
  isResumed: boolean,
  stop: AbortSignal,
): Promise<boolean> {
  for (const since of [plan.at - CLOCKS_APART, 0]) {
    if (since === 0 && ![...books.values()].some((book) => book.ranges("unexplained").length > 0)) break;
    for (let cursor: string | undefined, isFirst = true; isFirst || cursor; isFirst = false) {
      const page = await deps.store.list({}, deps.store.pageSize, cursor);
      for (const task of page.tasks) {
        // What changed since the beginning and was not seen counts in full; of the rest only what it settled.
        if (!isResumed && task.updatedAt > plan.at && !looking.hasSeen(task)) await looking.at(task);
        else await looking.settle(task);
      }
      if (stop.aborted) return false;
      cursor = (page.tasks.at(-1)?.updatedAt ?? since) < since ? undefined : page.cursor;
    }
  }
  return true;
}

const MOST_LAGGING = 1_000;

type Looking = ReturnType<typeof lookingAt>;

function lookingAt(deps: Deps, plan: Plan, books: Books, begun: Progress) {
  const tallies: Record<string, Counting> = structuredClone(begun.tallies);
  const maxSettled: Record<string, number> = { ...begun.maxSettled };
  const lagging: Lagging[] = [...begun.lagging];
  const live: Record<string, Record<string, number>> = structuredClone(begun.live) as never;
  const seen = new SeenHashes(plan.run);
  let { findings, documents } = begun;
  const horizon = redeliveryHorizon(deps.settings);
  const span = { from: plan.from, to: plan.at };
  const infos = new Map(plan.queues.map(({ stream, info }) => [stream, info]));
  const rewound = new Map(
    plan.queues
      .filter(({ info, before }) => before && isRewound(info, before))
      .map(({ stream, info }) => [stream, info.createdAt]),
  );
  const find = (...more: readonly Finding[]) => {
    if (more.length > 0) findings = found(findings, ...more);
  };

  const settle = async (task: Task): Promise<void> => {
    for (const entry of await settlementsOf(deps, task)) {
      const { queue, seq, outcome } = entry;
      const book = books.get(queue);
      // Of a former life of the stream: its sequences began anew, and this one is not that one.
      if (entry.at < (rewound.get(queue) ?? 0)) continue;
      maxSettled[queue] = Math.max(maxSettled[queue] ?? 0, seq);
      if (!book) continue;
      // One that has just been settled is on its way out.
      const isLate = plan.at - entry.at >= 2 * deps.settings.ackWait;
      if (isLate && book.isPresent(seq) && lagging.length < MOST_LAGGING)
        lagging.push({ ...entry, task: task.id });
      const before = book.classOf(seq);
      if (book.settle(seq, outcome, task.id)) continue;
      // What could not be the task's is settled in its document, and kept in a letter of its own.
      if (outcome === "conflict" || before === "conflict" || task.id.startsWith("stray-")) continue;
      const detail = `sequence ${seq} of ${queue} is settled by another document too`;
      find({ kind: "settled_twice", subject: task.id, agent: task.agent, detail });
    }
  };

  /** Of a task that should have a message. */
  const carrier = async (task: Task): Promise<void> => {
    if (task.state !== "dispatched" && task.state !== "running") return;
    if (plan.at - task.updatedAt < 2 * ORPHAN_AFTER) return;
    const info = infos.get(task.queue);
    const isBehind = info?.oldestAt !== undefined && !isStranded(info) && task.updatedAt > info.oldestAt;
    // Its message is further back in the queue. A running task's is the one that is under way.
    if (task.state === "dispatched" && isBehind) return;
    const isThere = await hasMessage(deps, task).catch((error: unknown) => {
      if (isPawlError(error, "bus_refused")) return false;
      throw error;
    });
    const isHeld = isThere && (task.state === "dispatched" || (await deps.bus.isHeld(task.token)));
    // It may have gone on while it was looked at.
    if (isHeld || (await deps.store.get(task.id))?.task.stamp !== task.stamp) return;
    const common = { subject: task.id, agent: task.agent };
    if (!isThere)
      find({
        ...common,
        kind: "orphan",
        detail: `it is ${task.state}, and ${task.queue} has no message of it`,
      });
    else if (task.state === "running")
      find({ ...common, kind: "unheld", detail: `${task.runner} claimed it and does not answer` });
  };

  /** Of a task that has one. What is missing of it is a finding, not the end of the reconciliation. */
  const journalOf = async (task: Task): Promise<readonly Entry[]> => {
    if (task.journaled === 0) return [];
    try {
      const journal = await readJournal(task.id, () => {}, deps);
      const entries = journal?.head.born === task.createdAt ? journal.entries : [];
      find(...examineJournal(task, entries));
      return entries;
    } catch (error) {
      if (isPawlError(error, "store_unavailable") || isPawlError(error, "store_refused")) throw error;
      const detail = `it can't be read: ${messageOf(error)}`;
      find({ kind: "journal_missing", subject: task.id, agent: task.agent, detail });
      return [];
    }
  };

  return {
    documents: () => documents,
    hasSeen: ({ id }: Task) => seen.has(id),
    settle,
    at: async (task: Task): Promise<void> => {
      documents++;
      seen.add(task.id);
      await settle(task);
      await carrier(task);
      find(...examine(task, plan.at, horizon, plan.since));
      if (!isFinal(task)) {
        const states = live[task.agent] ?? {};
        live[task.agent] = { ...states, [task.state]: (states[task.state] ?? 0) + 1 };
      }
      tallies[task.agent] ??= structuredClone(NO_TALLY) as Counting;
      countTask(tallies[task.agent] as Counting, task, span, await journalOf(task));
    },
    progress: (): Progress => ({ ...begun, tallies, findings, maxSettled, lagging, live, documents }),
    result: (): Account => ({ plan, books, tallies, findings, lagging, live, maxSettled, documents }),
  };
}

/** All of them, also those that were paged out. */
async function settlementsOf(deps: Deps, task: Task): Promise<readonly Settlement[]> {
  if (task.settledPages === 0) return task.settled;
  const pages = await Promise.all(
    Array.from({ length: task.settledPages }, (_, page) => deps.store.getPart(task.id, pageName(page))),
  );
  const older = pages.flatMap((text) => (text === undefined ? [] : (JSON.parse(text) as Settlement[])));
  return [...older, ...task.settled];
}
