import { isStranded } from "../../dispatch/queues.ts";
import { hasMessage } from "../../dispatch/sweep.ts";
import { isPawlError, isUnsound, messageOf, PawlError } from "../../errors/errors.ts";
import type { Entry } from "../../journal/entries.ts";
import { checkValues, readJournal } from "../../journal/journal.ts";
import type { Found } from "../../ports/store.ts";
import type { Guard } from "../../retry/guards.ts";
import { pause } from "../../retry/retry.ts";
import type { Dispatched, Running, Settlement, Task } from "../../task/document.ts";
import { ORPHAN_AFTER } from "../../task/due.ts";
import { pageHash, pageName } from "../../task/settled.ts";
import { readSettled } from "../../task/shape.ts";
import { isFinal } from "../../task/table.ts";
import type { Account } from "../account.ts";
import { evidence, isAccepted } from "../books/evidence.ts";
import { type OpenTask, stampHash } from "../books/open-task.ts";
import type { Finding, FindingName } from "../findings/findings.ts";
import { askAgain, type Pace } from "../pace.ts";
import { examineJournal, isOverdue } from "./examine.ts";

export type FoundTask = Extract<Found, { task: Task }>;

/** A document with all that had to be read beside it. */
export interface Gathered {
  readonly found: FoundTask;
  /** All that it settled, also what was paged out. */
  readonly settlements: readonly Settlement[];
  readonly entries: readonly Entry[];
  readonly findings: readonly Finding[];
  /** The task's holder did not answer. */
  readonly isUnheld?: boolean;
}

/** Tries of one read. Where a tenth of all answers is lost, as many in a row are no accident. */
const READS = 8;
/** Pages that are read together. */
const AT_ONCE = 16;

/** Whether it should have a message, and has had the time to get one. */
export function isDue(task: Task, at: number): task is Dispatched | Running {
  return (task.state === "dispatched" || task.state === "running") && at - task.updatedAt >= 2 * ORPHAN_AFTER;
}

/** Reads what a look at a document needs, and changes nothing: cut off at any point, the document was not looked at. */
export function gathering(pace: Pace, account: Account) {
  const { deps, stop } = pace;
  const { plan } = account;
  const infos = new Map(plan.queues.map(({ stream, info }) => [stream, info]));
  const whyOver = evidence(deps);

  /** What is stored beside a document. Where that can't be read and the store answers otherwise, it is a finding. */
  const beside = async <T>(task: Task, what: string, none: T, read: () => Promise<T>): Promise<Read<T>> => {
    try {
      return { value: await read(), findings: [] };
    } catch (error) {
      const isStores = isPawlError(error, "store_unavailable") || isPawlError(error, "store_refused");
      if (isStores) {
        // Tries of earlier slices count: it must come to an end also where each has time for one.
        const tries = (account.failed[task.id] ?? 0) + 1;
        account.failed[task.id] = tries;
        if (tries < READS && !isPawlError(error, "store_refused")) {
          if (stop.aborted) throw error;
          await pause(deps, "reconcile", tries, stop);
          return beside(task, what, none, read);
        }
        // It throws where the store is away, and not only this.
        await deps.store.get(task.id).catch(ifUnsound);
      }
      const kind = kindOf(error);
      return { value: none, findings: [findingOf(kind, task, `${what} can't be read: ${messageOf(error)}`)] };
    }
  };

  const settlementsOf = async (task: Task): Promise<Read<readonly Settlement[]>> => {
    const { settled: newest, settledPages: pages, settledHash } = task;
    if (pages === 0) return { value: newest, findings: [] };
    return beside(task, "what it settled before", newest, async () => {
      const texts = await pagesOf(task.id, pages);
      let hash: string | undefined;
      for (const text of texts) hash = pageHash(hash, text);
      if (texts.includes("") || (settledHash !== undefined && hash !== settledHash))
        throw new PawlError("journal_altered", "it is not what was written");
      return [...texts.flatMap((text) => readSettled(text, task.id)), ...newest];
    });
  };

  /** A document may say that there are more than there can be: nobody asks for those after many that are not there. */
  const pagesOf = async (id: string, count: number): Promise<string[]> => {
    const texts: string[] = [];
    for (let page = 0; page < count; page += AT_ONCE) {
      const names = Array.from({ length: Math.min(AT_ONCE, count - page) }, (_, i) => pageName(page + i));
      const some = await Promise.all(names.map((name) => deps.store.getPart(id, name)));
      texts.push(...some.map((text) => text ?? ""));
      if (some.every((text) => text === undefined)) break;
    }
    return texts;
  };

  const journalOf = async (task: Task): Promise<Read<readonly Entry[]>> => {
    if (task.journaled === 0) return NO_JOURNAL;
    const read = await beside(task, "its journal", undefined, async () => {
      const guard = once(task.id);
      const journal = await readJournal(deps, task.id, guard);
      if (journal?.head.born !== task.createdAt) return undefined;
      await checkValues(deps, task.id, journal.entries, guard);
      return journal;
    });
    const { head, entries = [] } = read.value ?? {};
    const isBehind = head !== undefined && head.fence > task.fence && !isAccepted(task);
    const back = `its journal was opened under fence ${head?.fence}, and its document says ${task.fence}`;
    const own = isBehind ? [findingOf("rolled_back", task, back)] : examineJournal(task, entries);
    const findings = read.findings.length > 0 ? read.findings : own;
    // The document was read before its journal: the task may have gone on in between.
    return { value: entries, findings: findings.length > 0 && (await hasMoved(task)) ? [] : findings };
  };

  /** What shows that it is done already; none where it went on after it was read. */
  const overOf = async (task: Task): Promise<Finding[]> => {
    const why = await whyOver(task);
    return why && !(await hasMoved(task)) ? [findingOf("rolled_back", task, why)] : [];
  };

  const hasMoved = async ({ id, stamp }: Task): Promise<boolean> =>
    (await deps.store.get(id).catch(ifUnsound))?.task.stamp !== stamp;

  const carrierOf = async (task: Task): Promise<Pick<Gathered, "findings" | "isUnheld">> => {
    if (isOverdue(task, plan.at)) return { findings: await overOf(task) };
    if (!isDue(task, plan.at)) return NONE;
    const info = infos.get(task.queue);
    const isBehind = info?.oldestAt !== undefined && !isStranded(info) && task.updatedAt > info.oldestAt;
    // The task's message is further back in the queue. A running task's is the one that is under way.
    if (task.state === "dispatched" && isBehind) return NONE;
    const isThere = await askAgain(pace, () => hasMessage(deps, task)).catch((error: unknown) => {
      if (isPawlError(error, "queue_gone")) return false;
      throw error;
    });
    const isHeld = isThere && (task.state === "dispatched" || (await deps.bus.isHeld(task)));
    // It may have gone on while it was looked at.
    if (isHeld || (await hasMoved(task))) return NONE;
    if (isThere) return { findings: [], isUnheld: task.state === "running" };
    const detail = `it is ${task.state}, and ${task.queue} has no message of it`;
    const over = await overOf(task);
    return { findings: over.length > 0 ? over : [findingOf("orphan", task, detail)] };
  };

  /** `before`: as the last report left it. What has not changed since has the journal that it had. */
  return async (found: FoundTask, before: OpenTask | undefined): Promise<Gathered> => {
    const { task } = found;
    // What was altered is not believed beyond what it settled: that its sequences are not named as well.
    if (found.altered) return { found, settlements: task.settled, entries: [], findings: [] };
    const settlements = await settlementsOf(task);
    const carrier = isFinal(task) ? NONE : await carrierOf(task);
    const isSame = before?.stamp === stampHash(task.stamp);
    const journal = isSame ? NO_JOURNAL : await journalOf(task);
    const findings = [...settlements.findings, ...carrier.findings, ...journal.findings];
    return { ...carrier, found, settlements: settlements.value, entries: journal.value, findings };
  };
}

interface Read<T> {
  readonly value: T;
  readonly findings: readonly Finding[];
}

const NONE = { findings: [] };
const NO_JOURNAL: Read<readonly Entry[]> = { value: [], findings: [] };

function kindOf(error: unknown): FindingName {
  if (isPawlError(error, "journal_altered")) return "altered";
  return isUnsound(error) || error instanceof SyntaxError ? "unreadable" : "journal_missing";
}

/** Nobody acts on it: another finding says why. */
export function ifUnsound(error: unknown): undefined {
  if (!isUnsound(error)) throw error;
  return undefined;
}

export function findingOf(
  kind: FindingName,
  { id, agent }: Pick<Task, "id" | "agent">,
  detail: string,
): Finding {
  return { kind, subject: id, agent, detail };
}

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
