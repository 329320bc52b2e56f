import type { Found } from "../../ports/store.ts";
import { sealIn } from "../../seal/seal.ts";
import { CLOCKS_AT_WORST, ONE_ENDING } from "../../settings/clocks.ts";
import { redeliveryHorizon } from "../../settings/settings.ts";
import type { Dispatched, Running, Settlement, Task } from "../../task/document.ts";
import { isFinal } from "../../task/table.ts";
import type { Account } from "../account.ts";
import { isRewound } from "../books/books.ts";
import { isAccepted, isIn } from "../books/evidence.ts";
import { type OpenTask, type OpenTaskIndex, stampHash, UNKNOWN } from "../books/open-task.ts";
import { countedBefore, leaveAsBefore, leaveOpen } from "../books/open-tasks.ts";
import { countedOf } from "../figures/counted.ts";
import { type Counting, NO_TALLY } from "../figures/tally.ts";
import type { Finding } from "../findings/findings.ts";
import { found as withFound } from "../findings/found.ts";
import type { Pace } from "../pace.ts";
import { type CountedBefore, countTask, examine } from "./examine.ts";
import { findingOf, type Gathered, gathering, isDue } from "./gather.ts";
import { noteLag } from "./repair.ts";

export interface Looking {
  /** Looks at documents, unless they were looked at before. Says how many were looked at anew. */
  at(documents: readonly Found[]): Promise<number>;
  isKnown(id: string): boolean;
  /** A part of what the last report left open can't be read: of the tasks in it only their documents can tell. */
  readonly lacksOpen: boolean;
}

const MOST_TWICE = 1_000;

/**
 * Looks at documents, each of them once. A document is known again by the sequences that it owns in the books, which it
 * never gives up; one that owns none, by its id. Both are kept with the account in one write. So it may come again because
 * it was changed, or in a page that was cut off, before or after the reconciliation was gone on with: it is neither left
 * out nor counted twice. What a document says is taken over in one go, after everything about it was read.
 */
export function lookingAt(pace: Pace, account: Account, openBefore: OpenTaskIndex | undefined): Looking {
  const { deps } = pace;
  const { plan, books, seen } = account;
  const horizon = redeliveryHorizon(deps.settings);
  const span = { from: plan.from, to: plan.at };
  const gather = gathering(pace, account);
  const rewound = new Map(
    plan.queues
      .filter(({ info, before }) => before && isRewound(info, before))
      .map(({ stream, info }) => [stream, info.createdAt]),
  );
  const marks = new Map(
    [...plan.queues, ...plan.broken, ...(plan.gone ?? [])].map(({ stream, before }) => [stream, before]),
  );
  const anew = new Set(
    plan.queues
      .filter(({ info, before }) => before && before.createdAt !== info.createdAt)
      .map(({ stream }) => stream),
  );
  const ends = new Map(plan.queues.map(({ stream, info }) => [stream, info.lastSeq]));
  // Where a part of what was open can't be read, nothing follows from what is missing in it.
  const isWhole = openBefore !== undefined && openBefore.count === plan.open?.count;

  /** As the last report left it. A dead letter whose time is over may be gone, and its id another task's. */
  const beforeOf = (id: string): OpenTask | undefined => {
    const before = openBefore?.get(id);
    const isOver = before !== undefined && before.expiresAt !== 0 && before.expiresAt <= plan.at;
    return isOver ? undefined : before;
  };

  /** Of a former life of the stream: its sequences began anew, and this one is not that one. */
  const isFormer = ({ queue, at }: Settlement) => at < (rewound.get(queue) ?? 0);
  const isOwner = (id: string) => (entry: Settlement) =>
    !isFormer(entry) && (books.get(entry.queue)?.isOwner(entry.seq, id) ?? false);
  /** An earlier report has explained it. A queue without a mark was made since, or is gone for longer than its tasks. */
  const wasExplained = (entry: Settlement): boolean => {
    const { queue, seq } = entry;
    const before = marks.get(queue);
    if (!before || (anew.has(queue) && !isFormer(entry)) || seq > before.upTo) return false;
    return !isIn(before.open, seq) && !isIn(before.unexplained ?? [], seq);
  };
  /** This report explains it, or an earlier one did: the next one will know by it that the task was counted. */
  const isExplained = (entry: Settlement): boolean =>
    wasExplained(entry) || (!isFormer(entry) && entry.seq <= (ends.get(entry.queue) ?? 0));
  const take = (findings: readonly Finding[]) => {
    if (findings.length > 0) account.findings = withFound(account.findings, ...findings);
  };

  /** Writes down what became of the sequences that carried it. `isTrue`: its document is as Pawl wrote it. */
  const takeSettlements = (task: Task, settlements: readonly Settlement[], isTrue = true): void => {
    for (const entry of settlements) {
      const { queue, seq, outcome } = entry;
      const book = books.get(queue);
      if (isFormer(entry)) continue;
      if (isTrue) account.maxSettled[queue] = Math.max(account.maxSettled[queue] ?? 0, seq);
      if (!book) continue;
      noteLag(pace, account, task.id, entry);
      const before = book.classOf(seq);
      const isAgain = before === undefined && outcome !== "lost" && wasExplained(entry);
      if (isTrue && isAgain && entry.at > plan.from + CLOCKS_AT_WORST && account.twice.length < MOST_TWICE)
        account.twice.push({ stream: queue, seq, task: task.id });
      if (book.explain(seq, outcome, task.id) || !isTrue) continue;
      // What could not be the task's is settled in its document, and kept in a letter of its own.
      if (outcome === "conflict" || before === "conflict" || task.id.startsWith("stray-")) continue;
      if (account.twice.length < MOST_TWICE) account.twice.push({ stream: queue, seq, task: task.id });
    }
  };

  const isKnown = (id: string) => seen.has(id);
  const isKnownTask = ({ id, settled }: Task) => seen.has(id) || settled.some(isOwner(id));

  /** Why it is not as Pawl wrote it. */
  const whyAltered = ({ altered, differs, task }: Extract<Found, { task: Task }>): string | undefined => {
    if (altered ?? differs) return altered ?? differs;
    const { sealedSince = Infinity } = plan;
    const isBare = sealIn(task) === undefined && task.updatedAt > sealedSince + CLOCKS_AT_WORST;
    return isBare ? "it was written after documents were sealed, and has no seal" : undefined;
  };

  /** What shows that it was further already. */
  const whyBack = (task: Task, settlements: readonly Settlement[], before?: OpenTask): string | undefined => {
    if (isAccepted(task, plan.from)) return undefined;
    if (before) return setBack(task, before);
    if (!isWhole || isFinal(task) || openBefore?.get(task.id)?.stamp === UNKNOWN) return undefined;
    const old = settlements.find(wasExplained);
    return old && `the last report found it over; it had settled sequence ${old.seq} of ${old.queue}`;
  };

  /** What an earlier report counted of it. Undefined: its sequences are the next report's, and so is the task. */
  const basisOf = (
    task: Task,
    settlements: readonly Settlement[],
    before?: OpenTask,
  ): CountedBefore | undefined => {
    if (before) return countedBefore(before);
    if (plan.isBack) return task.createdAt > plan.from && task.createdAt <= plan.at ? "new" : "history";
    const isBeyond = (entry: Settlement) =>
      !isFormer(entry) && entry.seq > (ends.get(entry.queue) ?? Infinity);
    if (isFinal(task) && settlements.length > 0 && settlements.every(isBeyond)) return undefined;
    if (plan.isFirst) return "new";
    if (!plan.open) return task.createdAt > plan.from ? "new" : "history";
    if (settlements.some(wasExplained)) return "over";
    // What no sequence tells of was left open by the last report, if that saw it.
    const isSure = isWhole || settlements.length > 0 || !isFinal(task);
    return isSure || task.createdAt > plan.from ? "new" : "over";
  };

  const takeAltered = (key: string, task: Task, why: string): void => {
    take([{ kind: "altered", subject: key, agent: task.agent, detail: why }]);
    takeSettlements(task, task.settled, false);
    seen.add(key);
    const before = beforeOf(key);
    // The document is there, and not missed the next time. A task that was over is not made open by what somebody wrote.
    if (before) leaveAsBefore(account, before);
    else if (task.id !== key || isNew(task)) leaveAsBefore(account, unknown(key, plan.at));
  };

  /** The task is not over, and no report could have seen its end: put back as it was, it goes on. */
  const isNew = (task: Task) =>
    !isFinal(task) &&
    !task.settled.some(wasExplained) &&
    (plan.isFirst || task.createdAt > plan.from - CLOCKS_AT_WORST);

  const takeSound = ({ found, settlements, entries, findings, isUnheld }: Gathered): void => {
    const { task } = found;
    const before = beforeOf(task.id);
    const basis = basisOf(task, settlements, before);
    if (basis === undefined) return;
    const back = findings.some(({ kind }) => kind === "rolled_back")
      ? undefined
      : whyBack(task, settlements, before);
    const isBack = back !== undefined || findings.some(({ kind }) => kind === "rolled_back");
    const own = examine(task, plan.at, horizon, plan.since);
    takeSettlements(task, settlements);
    take([
      ...findings.filter(({ kind }) => !isBack || kind !== "orphan"),
      ...(back === undefined ? [] : [findingOf("rolled_back", task, back)]),
      ...own.filter(({ kind }) => !isBack || kind !== "overdue"),
    ]);
    delete account.failed[task.id];
    if (isUnheld && task.state === "running")
      account.unheld.push({
        task: task.id,
        agent: task.agent,
        token: task.token,
        runner: task.runner,
        at: deps.clock.now(),
      });
    // By what it owns it is known at once only while that is in the document itself.
    // A task that ended just now may yet be told of a duplicate: the next report counts from what was seen here.
    const isRecent = task.updatedAt > plan.at - ONE_ENDING;
    const isOpen = !isFinal(task) || task.state === "failed" || isRecent || !settlements.some(isExplained);
    if (isOpen || task.settledPages > 0 || !task.settled.some(isOwner(task.id))) seen.add(task.id);
    account.documents++;
    if (!isFinal(task)) {
      const states = account.live[task.agent] ?? {};
      account.live[task.agent] = { ...states, [task.state]: (states[task.state] ?? 0) + 1 };
      countElsewhere(task);
    }
    if (isFinal(task) && "expiresAt" in task && task.settled.length > 0) {
      const kept = task.expiresAt - Math.max(...task.settled.map(({ at }) => at));
      account.shortestKept = Math.min(account.shortestKept ?? Infinity, kept);
    }
    // A task that was put back is not open again: the next report, and whoever sweeps until then, must know it for what it is.
    if (isBack && before) leaveAsBefore(account, before);
    else if (isOpen && !isBack) leaveOpen(account, task, countedOf(task));
    account.tallies[task.agent] ??= structuredClone(NO_TALLY) as Counting;
    countTask(account.tallies[task.agent] as Counting, task, span, entries, basis);
  };

  /** A dispatch comes before its message: a queue that nobody has made yet never had one. */
  const hadMessage = (task: Dispatched | Running): boolean =>
    task.state === "running" || task.seq !== undefined || marks.has(task.queue) || isDue(task, plan.at);

  const countElsewhere = (task: Task): void => {
    if (task.state !== "dispatched" && task.state !== "running") return;
    if (ends.has(task.queue) || !hadMessage(task)) return;
    account.elsewhere[task.queue] = (account.elsewhere[task.queue] ?? 0) + 1;
  };

  const at = async (documents: readonly Found[]): Promise<number> => {
    const fresh: Extract<Found, { task: Task }>[] = [];
    let looked = 0;
    for (const one of documents) {
      if ("unreadable" in one) {
        if (isKnown(one.key)) continue;
        seen.add(one.key);
        take([{ kind: "unreadable", subject: one.key, agent: "", detail: one.unreadable }]);
        leaveAsBefore(account, beforeOf(one.key) ?? unknown(one.key, plan.at));
        looked++;
        continue;
      }
      const why = whyAltered(one);
      if (why !== undefined) {
        if (isKnown(one.key)) continue;
        takeAltered(one.key, one.task, why);
        looked++;
      } else if (isKnownTask(one.task)) takeSettlements(one.task, one.task.settled);
      else fresh.push(one);
    }
    const gathered = await Promise.all(fresh.map((one) => gather(one, beforeOf(one.task.id))));
    // From here on nothing is waited for.
    for (const one of gathered) takeSound(one);
    return looked + gathered.length;
  };
  return { at, isKnown, lacksOpen: openBefore !== undefined && !isWhole };
}

/** Nobody knows what it is: restored or removed, it is no finding of the next report. */
function unknown(id: string, at: number): OpenTask {
  return { id, agent: "-", state: "failed", stamp: UNKNOWN, expiresAt: at, numbers: [] };
}

/** As the last report left it, it had been written later than this document. */
function setBack(task: Task, { stamp, ...before }: OpenTask): string | undefined {
  if (stampHash(task.stamp) === stamp) return undefined;
  const [writes, had] = [countedOf(task).writes, countedBefore({ stamp, ...before }).writes];
  if (writes < had) return `it was written ${writes} times, and ${had} times at the last report`;
  const since = writes - had;
  const isThere = since >= task.history.length || task.history.some((one) => stampHash(one.stamp) === stamp);
  return isThere ? undefined : "its history lacks the write that the last report saw last";
}
