import type { Dispatched, Running, Settlement, Task } from "../task/document.ts";
import { isPawlError, messageOf, PawlError } from "../task/errors.ts";
import { countTask, examine, examineJournal } from "../task/examine.ts";
import type { Finding, FindingName } from "../task/findings.ts";
import { found } from "../task/found.ts";
import type { Entry } from "../task/journal.ts";
import { redeliveryHorizon } from "../task/settings.ts";
import { pageName } from "../task/settled.ts";
import { ORPHAN_AFTER } from "../task/sweep.ts";
import { isFinal } from "../task/table.ts";
import { type Counting, NO_TALLY } from "../task/tally.ts";
import { pause } from "./deps.ts";
import { readJournal } from "./journal.ts";
import { isStranded } from "./queues.ts";
import type { Account } from "./reconcile-account.ts";
import { isRewound } from "./reconcile-books.ts";
import { type Pace, patiently } from "./reconcile-pace.ts";
import { hasMessage } from "./sweep.ts";
import type { Guard } from "./write.ts";

export interface Looking {
  /** Looks at a document unless it was looked at before. True when that asked the store for more than the document. */
  at(task: Task): Promise<boolean>;
  /** Takes from a document of another period only what it settled. */
  settle(task: Task): Promise<boolean>;
}

const MOST_LAGGING = 1_000;
const READS = 3;

/**
 * Looks at documents, each of them once. A document is known again by the sequences that it owns in the books, which it
 * never gives up; one that owns none, by its id. Both are kept with the account in one write. So it may move to the front
 * of the list because it was changed, or come up again in a page that was cut off, before or after the reconciliation
 * was gone on with: it is neither left out nor counted twice. What a document says is taken over in one go, after
 * everything about it was read: cut off before, it was not looked at.
 */
export function lookingAt(pace: Pace, account: Account): Looking {
  const { deps, stop } = pace;
  const { plan, books, seen } = account;
  const horizon = redeliveryHorizon(deps.settings);
  const span = { from: plan.from, to: plan.at };
  const infos = new Map(plan.queues.map(({ stream, info }) => [stream, info]));
  const rewound = new Map(
    plan.queues
      .filter(({ info, before }) => before && isRewound(info, before))
      .map(({ stream, info }) => [stream, info.createdAt]),
  );
  /** Of a former life of the stream: its sequences began anew, and this one is not that one. */
  const isFormer = ({ queue, at }: Settlement) => at < (rewound.get(queue) ?? 0);
  const isOwner = (id: string) => (entry: Settlement) =>
    !isFormer(entry) && (books.get(entry.queue)?.isOwner(entry.seq, id) ?? false);

  const settled = (task: Task, settlements: readonly Settlement[]): Finding[] => {
    const findings: Finding[] = [];
    for (const entry of settlements) {
      const { queue, seq, outcome } = entry;
      const book = books.get(queue);
      if (isFormer(entry)) continue;
      account.maxSettled[queue] = Math.max(account.maxSettled[queue] ?? 0, seq);
      if (!book) continue;
      // One that has just been settled is on its way out.
      const isLate = plan.at - entry.at >= 2 * deps.settings.ackWait;
      if (isLate && book.isPresent(seq) && account.lagging.length < MOST_LAGGING)
        account.lagging.push({ ...entry, task: task.id });
      const before = book.classOf(seq);
      if (book.settle(seq, outcome, task.id)) continue;
      // What could not be the task's is settled in its document, and kept in a letter of its own.
      if (outcome === "conflict" || before === "conflict" || task.id.startsWith("stray-")) continue;
      findings.push(
        finding("settled_twice", task, `sequence ${seq} of ${queue} is settled by another document too`),
      );
    }
    return findings;
  };

  /** Whether it should have a message, and has had the time to get one. */
  const isCarried = (task: Task): task is Dispatched | Running =>
    (task.state === "dispatched" || task.state === "running") && plan.at - task.updatedAt >= 2 * ORPHAN_AFTER;

  const carrier = async (task: Task): Promise<Finding[]> => {
    if (!isCarried(task)) return [];
    const info = infos.get(task.queue);
    const isBehind = info?.oldestAt !== undefined && !isStranded(info) && task.updatedAt > info.oldestAt;
    // Its message is further back in the queue. A running task's is the one that is under way.
    if (task.state === "dispatched" && isBehind) return [];
    const isThere = await patiently(pace, () => hasMessage(deps, task)).catch((error: unknown) => {
      if (isPawlError(error, "bus_refused")) return false;
      throw error;
    });
    const isHeld = isThere && (task.state === "dispatched" || (await deps.bus.isHeld(task.token)));
    // It may have gone on while it was looked at.
    if (isHeld || (await deps.store.get(task.id))?.task.stamp !== task.stamp) return [];
    if (!isThere)
      return [finding("orphan", task, `it is ${task.state}, and ${task.queue} has no message of it`)];
    return task.state === "running"
      ? [finding("unheld", task, `${task.runner} claimed it and does not answer`)]
      : [];
  };

  /** What is stored beside a document. Where that can't be read and the store answers otherwise, it is a finding. */
  const beside = async <T>(task: Task, what: string, none: T, read: () => Promise<T>): Promise<Read<T>> => {
    try {
      return { value: await read(), findings: [] };
    } catch (error) {
      const isStores = isPawlError(error, "store_unavailable") || isPawlError(error, "store_refused");
      if (isStores) {
        const tries = account.failed?.task === task.id ? account.failed.tries + 1 : 1;
        account.failed = { task: task.id, tries };
        // Tries of earlier slices count: it must come to an end also where each has time for one.
        if (tries < READS && !isPawlError(error, "store_refused")) {
          if (stop.aborted) throw error;
          await pause(deps, tries, stop);
          return beside(task, what, none, read);
        }
        // It throws where the store is away, and not only this.
        await deps.store.get(task.id);
      }
      return {
        value: none,
        findings: [finding("journal_missing", task, `${what} can't be read: ${messageOf(error)}`)],
      };
    }
  };

  /** All that it settled, also what was paged out. */
  const settlementsOf = async (task: Task): Promise<Read<readonly Settlement[]>> => {
    const { settled: newest, settledPages: pages } = task;
    if (pages === 0) return { value: newest, findings: [] };
    return beside(task, "what it settled before", newest, async () => {
      const names = Array.from({ length: pages }, (_, page) => pageName(page));
      const texts = await Promise.all(names.map((name) => deps.store.getPart(task.id, name)));
      const older = texts.flatMap((text) => (text === undefined ? [] : (JSON.parse(text) as Settlement[])));
      return [...older, ...newest];
    });
  };

  const journalOf = async (task: Task): Promise<Read<readonly Entry[]>> => {
    if (task.journaled === 0) return { value: [], findings: [] };
    const read = await beside(task, "it", undefined, async () => {
      const journal = await readJournal(task.id, once(task.id), deps);
      return journal?.head.born === task.createdAt ? journal.entries : [];
    });
    if (read.value === undefined) return { ...read, value: [] };
    return { value: read.value, findings: examineJournal(task, read.value) };
  };

  const take = (findings: readonly Finding[]) => {
    if (findings.length > 0) account.findings = found(account.findings, ...findings);
  };

  /** Its newest settlements may say more than when it was looked at. */
  const known = (task: Task): boolean => {
    if (!seen.has(task.id) && !task.settled.some(isOwner(task.id))) return false;
    settled(task, task.settled);
    return true;
  };

  const look = async (task: Task, isOfPeriod: boolean): Promise<boolean> => {
    if (known(task)) return false;
    const settlements = await settlementsOf(task);
    const isKnown = settlements.value.some(isOwner(task.id));
    const counts = isOfPeriod && !isKnown;
    const [carried, journal] = counts ? [await carrier(task), await journalOf(task)] : [[], NO_JOURNAL];
    // From here on nothing is waited for.
    take([...settled(task, settlements.value), ...settlements.findings, ...carried, ...journal.findings]);
    account.failed = undefined;
    const isPaged = task.settledPages > 0;
    // By what it owns it is known at once only while that is in the document itself.
    if (isPaged || (counts && !task.settled.some(isOwner(task.id)))) seen.add(task.id);
    if (!counts) return isPaged;
    account.documents++;
    take(examine(task, plan.at, horizon, plan.since));
    if (isCarried(task) && !infos.has(task.queue))
      account.elsewhere[task.queue] = (account.elsewhere[task.queue] ?? 0) + 1;
    if (!isFinal(task)) {
      const states = account.live[task.agent] ?? {};
      account.live[task.agent] = { ...states, [task.state]: (states[task.state] ?? 0) + 1 };
    }
    account.tallies[task.agent] ??= structuredClone(NO_TALLY) as Counting;
    countTask(account.tallies[task.agent] as Counting, task, span, journal.value);
    return true;
  };
  return { at: (task) => look(task, true), settle: (task) => look(task, false) };
}

interface Read<T> {
  readonly value: T;
  readonly findings: readonly Finding[];
}

const NO_JOURNAL: Read<readonly Entry[]> = { value: [], findings: [] };

const finding = (kind: FindingName, { id, agent }: Task, detail: string): Finding => {
  return { kind, subject: id, agent, detail };
};

/** Asks the store once: whoever looks at many documents tries again himself, and counts that. */
function once(taskId: string): Guard {
  let isTried = false;
  const guard = () => {
    if (isTried)
      throw new PawlError("store_unavailable", `The store does not answer for the journal of ${taskId}`);
  };
  const retried = () => {
    isTried = true;
  };
  return Object.assign(guard, { retried });
}
