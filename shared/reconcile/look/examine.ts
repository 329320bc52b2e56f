import { lost } from "../../journal/budget.ts";
import { plus } from "../../journal/cost.ts";
import { type Entry, known } from "../../journal/entries.ts";
import { CLOCKS_IN_STEP } from "../../settings/clocks.ts";
import type { HistoryEntry, Millis, Scheduled, Task, Waiting } from "../../task/document.ts";
import { isFinal } from "../../task/table.ts";
import { sayDuration } from "../../values/duration.ts";
import { type Counted, costOf, countedOf, minus, NOTHING_COUNTED } from "../figures/counted.ts";
import { addTime, type Counting } from "../figures/tally.ts";
import type { Finding, FindingName } from "../findings/findings.ts";

export interface Span {
  /** After this, up to and including that. */
  readonly from: Millis;
  readonly to: Millis;
}

/** A dispatcher comes every minute; after so long nobody came. */
const OVERDUE = 15 * 60_000;

export function isOverdue(task: Task, now: Millis): task is (Scheduled | Waiting) & { dueAt: Millis } {
  return (task.state === "scheduled" || task.state === "waiting") && (task.dueAt ?? now) < now - OVERDUE;
}

/**
 * What is wrong with a document by itself. `horizon`: how long after its end a message may come again. `since`: what
 * was lost before was reported before.
 */
export function examine(task: Task, now: Millis, horizon: number, since: Millis): Finding[] {
  const findings: Finding[] = [];
  const { id, agent, history } = task;
  const find = (kind: FindingName, detail: string) => findings.push({ kind, subject: id, agent, detail });

  const completions = completionsOf(task);
  if (completions > 1) find("completed_twice", `${completions} completions are recorded`);
  const claims = history.filter(({ event }) => CLAIMS.has(event)).map(({ fence }) => fence);
  const twice = claims.find((fence, i) => claims.indexOf(fence) !== i);
  if (twice !== undefined) find("executed_unfenced", `two holders were written under fence ${twice}`);
  else if (task.executions > task.fence)
    find("executed_unfenced", `${task.executions} starts are recorded, and ${task.fence} claims`);

  const back = history.find(
    (entry, i) =>
      i > 0 &&
      (history[i - 1] as HistoryEntry).at >= since &&
      entry.at < (history[i - 1] as HistoryEntry).at - CLOCKS_IN_STEP,
  );
  if (back) {
    const before = history[history.indexOf(back) - 1] as HistoryEntry;
    find(
      "clock_back",
      `${back.by} wrote ${back.event} ${sayDuration(before.at - back.at)} before ${before.by} wrote ${before.event}`,
    );
  }
  if (isFinal(task) && "expiresAt" in task) {
    const last = Math.max(task.createdAt, ...task.settled.map(({ at }) => at));
    if (task.expiresAt - last < horizon - CLOCKS_IN_STEP)
      find(
        "ttl_short",
        `it expires ${sayDuration(task.expiresAt - last)} after its last message, and has to stay ${sayDuration(horizon)}`,
      );
  }
  if (isOverdue(task, now))
    find("overdue", `it is ${task.state} and was due at ${new Date(task.dueAt).toISOString()}`);
  if (task.state === "completed" && (task.executions === 0 || task.settled.length + task.settledPages === 0))
    find("made_up", `${task.executions} starts and ${task.settled.length} settled sequences are recorded`);
  if (task.state === "in_doubt") find("in_doubt", `effect ${task.effect}, try ${task.tries}`);
  for (const { queue, seq } of task.settled.filter(({ outcome, at }) => outcome === "lost" && at >= since))
    find("message_lost", `sequence ${seq} of ${queue}`);
  return findings;
}

/** What is wrong with its journal. */
export function examineJournal({ id, agent, journaled, epoch }: Task, entries: readonly Entry[]): Finding[] {
  const finding = (kind: FindingName, detail: string): Finding => ({ kind, subject: id, agent, detail });
  if (entries.length < journaled && epoch === 0)
    return [
      finding("journal_missing", `its document says ${journaled} entries, and there are ${entries.length}`),
    ];
  try {
    known(entries);
    return [];
  } catch {
    const begun = new Set(entries.flatMap((one) => (one.kind === "intent" ? [one.key] : [])));
    const keys = entries.flatMap((one) => (one.kind === "receipt" && !begun.has(one.key) ? [one.key] : []));
    return [finding("receipt_without_intent", keys.slice(0, 5).join(", "))];
  }
}

const CLAIMS = new Set(["claim", "takeover", "adopt"]);
const ENDS = new Set(["complete", "retry", "hold", "handOff", "sleep", "wait", "doubt", "fail", "cancel"]);
const DISPATCHES = new Set(["submit", "dispatch", "wake", "redrive", "resolve", "requeue"]);

/** One result is kept: nothing leaves `completed`, so there is one completion at most. */
function completionsOf({ history, settled }: Task): number {
  const events = history.filter(({ event }) => event === "complete").length;
  return Math.max(events, settled.filter(({ outcome }) => outcome === "completed").length);
}

/**
 * What was counted of a task before: so much, at the last report; nothing, it came since ("new"); all of it but what came
 * to a task that was over ("over"). Of a task that nobody counted, only its history can say when it did what ("history").
 */
export type CountedBefore = Counted | "new" | "over" | "history";

/** Adds what a task did in a period: what it counts now without what was counted before. */
export function countTask(
  tally: Counting,
  task: Task,
  span: Span,
  entries: readonly Entry[],
  before: CountedBefore,
): void {
  const isIn = (at: Millis) => at > span.from && at <= span.to;
  const events = task.history.filter(({ at }) => isIn(at));
  if (before === "new") tally.created++;
  const isCompleted = events.some(({ event }) => event === "complete");
  tally.executedTwice += isCompleted ? Math.max(0, completionsOf(task) - 1) : 0;
  countTimes(tally, task.history, isIn);
  if (before === "over") {
    // To its end: one to which something came only just now is left open, and the next report counts from here.
    const since = task.history.filter(({ at, event }) => at > span.from && AFTERWARDS.has(event));
    countEvents(tally, since);
    return;
  }
  if (before === "history") {
    countEvents(tally, events);
    const end = endOf(task);
    if (end !== undefined && isIn(end)) countEnd(tally, task);
    return;
  }
  const base = before === "new" ? NOTHING_COUNTED : before;
  const since = minus(countedOf(task), base);
  countNumbers(tally, since);
  const isOver = task.state === "failed" ? since.failed > 0 : since.completed + since.cancelled > 0;
  if (!isOver) return;
  countEnd(tally, task);
  // A turn under way looks like one that was lost, so these are counted at the end; after a redrive, the ones since then.
  tally.respent = plus(tally.respent, lost(entries, base.failed > 0 ? span.from : undefined));
}

function countNumbers(tally: Counting, since: Counted): void {
  for (const layer of LAYERS) tally.duplicates[layer] += since[layer];
  tally.skipped += since.skipped;
  tally.executions += since.executions;
  tally.takeovers += since.takeovers;
  tally.retries += since.retries;
  tally.writes += since.writes + since.journaled;
  tally.spent = plus(tally.spent, costOf(since, "spent"));
  tally.saved = plus(tally.saved, costOf(since, "saved"));
}

/** What its history has of a period. Not what it cost: when it was paid is not there. */
function countEvents(tally: Counting, events: readonly HistoryEntry[]): void {
  const times = (event: string, note?: string) =>
    events.filter((one) => one.event === event && (note === undefined || one.note === note)).length;
  for (const layer of LAYERS) tally.duplicates[layer] += times("publishDuplicate", layer);
  tally.skipped += times("skip");
  tally.executions += starts(events);
  tally.takeovers += times("takeover");
  tally.retries += times("retry") + times("hold");
  tally.writes += events.length;
}

function countEnd(tally: Counting, task: Task): void {
  if (task.state === "completed" || task.state === "failed" || task.state === "cancelled")
    tally[task.state]++;
  if (task.state === "completed") {
    addTime(tally.wholeMs, (endOf(task) ?? task.updatedAt) - task.createdAt);
    tally.wholeUsd += task.spent.usd;
  }
  if (task.state === "failed")
    tally.deadLetters[task.error.code] = (tally.deadLetters[task.error.code] ?? 0) + 1;
}

/** What still comes to a task that is over. */
const AFTERWARDS: ReadonlySet<string> = new Set(["skip", "surplus", "publishDuplicate", "accept"]);
const LAYERS = ["window", "subject", "document", "key"] as const;
const BEGINNINGS = new Set(["submit", "adopt", "deadLetter"]);

/** When it ended: by its history, or, where that has forgotten it, by what it settled last. */
function endOf(task: Task): Millis | undefined {
  if (!isFinal(task)) return undefined;
  const { history, settled } = task;
  const change = history.findLast(({ state, event }, i) =>
    i > 0 ? state !== history[i - 1]?.state : BEGINNINGS.has(event),
  );
  return change?.at ?? settled.findLast(({ outcome }) => outcome === task.state)?.at;
}

/** A claim is a start if it may run its handler at once; otherwise the `start` that follows it is. */
function starts(events: readonly HistoryEntry[]): number {
  let count = 0;
  let isCounted = false;
  for (const { event } of events) {
    if (event === "takeover") isCounted = false;
    else if (event === "claim" || event === "adopt" || (event === "start" && !isCounted)) {
      count++;
      isCounted = event !== "start";
    }
  }
  return count;
}

function countTimes(tally: Counting, history: readonly HistoryEntry[], isIn: (at: Millis) => boolean): void {
  let sent: Millis | undefined;
  let begun: Millis | undefined;
  for (const { event, at } of history) {
    if (DISPATCHES.has(event)) sent = at;
    if (CLAIMS.has(event) || event === "start") {
      if (sent !== undefined && isIn(at)) addTime(tally.queuedMs, at - sent);
      sent = undefined;
      begun = at;
    }
    if (ENDS.has(event)) {
      if (begun !== undefined && isIn(at)) addTime(tally.runMs, at - begun);
      begun = undefined;
    }
  }
}
