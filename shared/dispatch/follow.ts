import { PawlError } from "../errors/errors.ts";
import type { Entry, Head } from "../journal/entries.ts";
import { readJournal } from "../journal/journal.ts";
import type { Deps } from "../ports/deps.ts";
import type { HistoryEntry, Task } from "../task/document.ts";
import { isFinal } from "../task/table.ts";

/** Something that happened to a task. `id` says how far a follower has come, and where another can go on. */
export type Followed =
  | { readonly kind: "transition"; readonly id: string; readonly data: HistoryEntry }
  | { readonly kind: "journal"; readonly id: string; readonly data: Entry & { readonly n: number } }
  | { readonly kind: "end"; readonly id: string; readonly data: { readonly state: Task["state"] } };

/** Should a word that something changed get lost, it is looked at this often. */
const LOOK_EVERY = 5_000;
/** A task that changes all the time is read this often at most. */
const LEAST_PAUSE = 50;
/** What a holder journals comes after one of these. */
const BEGINS: ReadonlySet<string> = new Set(["claim", "takeover", "start"]);

/**
 * Everything that happens to a task, as it happens, until it is over: from its document and its journal, which are the
 * truth; what the bus says of changes only makes it quick. `looked`: called each time when all of that is told, with what
 * was seen.
 */
export async function* follow(
  deps: Deps,
  taskId: string,
  signal: AbortSignal,
  after?: string,
  looked?: (task: Task, head: Head | undefined) => void,
): AsyncGenerator<Followed> {
  let { stamp, count, epoch } = parse(after);
  let lastAt = 0;
  let changed = Promise.withResolvers<void>();
  const stop = deps.bus.listen(() => changed.resolve(), taskId);
  const lookNow = () => changed.resolve();
  signal.addEventListener("abort", lookNow);
  try {
    while (!signal.aborted) {
      changed = Promise.withResolvers<void>();
      if (signal.aborted) return;
      const task = (await deps.store.get(taskId))?.task;
      if (!task) throw new PawlError("task_unknown", `There is no task ${taskId}`);
      const head = await journalHead(deps, task);
      // Of a holder that had not claimed it when the task was read: that comes first.
      if (head && head.fence > task.fence) {
        await deps.clock.sleep(LEAST_PAUSE, signal);
        continue;
      }
      // Redriven from scratch, the journal begins anew, however long it is by now.
      if (epoch !== undefined && epoch !== task.epoch) count = 0;
      if (head && head.count < count) count = 0;
      epoch = task.epoch;
      const at = () => `${stamp}.${count}.${epoch}`;
      const seen = task.history.findIndex((one) => one.stamp === stamp);
      // The last one seen may have made room for newer ones meanwhile.
      const news = task.history.filter(({ at }, i) => (seen >= 0 ? i > seen : at >= lastAt));
      const told = (data: HistoryEntry): Followed => {
        stamp = data.stamp;
        lastAt = data.at;
        return { kind: "transition", id: at(), data };
      };
      const begun = 1 + news.findLastIndex(({ event }) => BEGINS.has(event));
      for (const data of news.slice(0, begun)) yield told(data);
      for (const entry of head ? await entriesSince(deps, head, count, signal) : []) {
        count++;
        yield { kind: "journal", id: at(), data: { n: count, ...entry } };
      }
      for (const data of news.slice(begun)) yield told(data);
      if (isFinal(task)) {
        yield { kind: "end", id: at(), data: { state: task.state } };
        return;
      }
      looked?.(task, head);
      await Promise.race([changed.promise, deps.clock.sleep(LOOK_EVERY, signal)]);
      await deps.clock.sleep(LEAST_PAUSE, signal);
    }
  } finally {
    stop();
    signal.removeEventListener("abort", lookNow);
  }
}

/** The last transition, how many entries of the journal, and in which epoch; without one it is the task's own. */
function parse(after: string | undefined): { stamp: string; count: number; epoch: number | undefined } {
  const [, stamp = "", count = 0, epoch] =
    /^([\w-]{1,64})\.(\d{1,6})(?:\.(\d{1,6}))?$/.exec(after ?? "") ?? [];
  return { stamp, count: Number(count), epoch: epoch === undefined ? undefined : Number(epoch) };
}

async function journalHead(deps: Deps, task: Task): Promise<Head | undefined> {
  const head = (await deps.store.getHead(task.id))?.head;
  return head && head.born === task.createdAt && head.epoch === task.epoch ? head : undefined;
}

/** Mostly the newest few, which the head has; all pages only for a follower who is far behind. */
async function entriesSince(
  deps: Deps,
  head: Head,
  count: number,
  signal: AbortSignal,
): Promise<readonly Entry[]> {
  const news = head.count - count;
  if (news <= head.recent.length) return news > 0 ? head.recent.slice(-news) : [];
  const whole = await readJournal(deps, head.taskId, () => signal.throwIfAborted());
  return whole?.entries.slice(count) ?? [];
}
