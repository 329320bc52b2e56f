import type { HistoryEntry, Task } from "../task/document.ts";
import { PawlError } from "../task/errors.ts";
import type { Entry, Head } from "../task/journal.ts";
import { isFinal } from "../task/table.ts";
import type { Deps } from "./deps.ts";
import { readJournal } from "./journal.ts";

/** Something that happened to a task. `id` says how far a follower has come, and where another can go on. */
export type Followed =
  | { readonly kind: "transition"; readonly id: string; readonly data: HistoryEntry }
  | { readonly kind: "journal"; readonly id: string; readonly data: Entry & { readonly n: number } }
  | { readonly kind: "end"; readonly id: string; readonly data: { readonly state: Task["state"] } };

/** Should a word that something changed get lost, it is looked at this often. */
const LOOK_EVERY = 5_000;
/** A task that changes all the time is read this often at most. */
const LEAST_PAUSE = 50;

/**
 * Everything that happens to a task, as it happens, until it is over: from its document and its journal, which are the
 * truth; what the bus says of changes only makes it quick.
 */
export async function* follow(
  deps: Deps,
  taskId: string,
  signal: AbortSignal,
  after?: string,
): AsyncGenerator<Followed> {
  let [stamp = "", count] = parse(after);
  let lastAt = 0;
  let changed = Promise.withResolvers<void>();
  const stop = deps.bus.listen(() => changed.resolve(), taskId);
  const wake = () => changed.resolve();
  signal.addEventListener("abort", wake);
  try {
    while (!signal.aborted) {
      changed = Promise.withResolvers<void>();
      if (signal.aborted) return;
      const task = (await deps.store.get(taskId))?.task;
      if (!task) throw new PawlError("task_unknown", `There is no task ${taskId}`);
      const head = await journalHead(deps, task);
      const at = () => `${stamp}.${count}`;
      const seen = task.history.findIndex((one) => one.stamp === stamp);
      // The last one seen may have made room for newer ones meanwhile.
      const news = task.history.filter(({ at }, i) => (seen >= 0 ? i > seen : at >= lastAt));
      for (const data of news) {
        stamp = data.stamp;
        lastAt = data.at;
        yield { kind: "transition", id: at(), data };
      }
      // Begun anew: redriven from scratch.
      if (head && head.count < count) count = 0;
      for (const entry of head ? await entriesSince(deps, head, count) : []) {
        count++;
        yield { kind: "journal", id: at(), data: { n: count, ...entry } };
      }
      if (isFinal(task)) {
        yield { kind: "end", id: at(), data: { state: task.state } };
        return;
      }
      await Promise.race([changed.promise, deps.clock.sleep(LOOK_EVERY, signal)]);
      await deps.clock.sleep(LEAST_PAUSE, signal);
    }
  } finally {
    stop();
    signal.removeEventListener("abort", wake);
  }
}

function parse(after: string | undefined): [string | undefined, number] {
  const [, stamp, count] = /^([\w-]{1,64})\.(\d{1,6})$/.exec(after ?? "") ?? [];
  return [stamp, Number(count ?? 0)];
}

async function journalHead(deps: Deps, task: Task): Promise<Head | undefined> {
  const head = (await deps.store.getHead(task.id))?.head;
  return head && head.born === task.createdAt && head.epoch === task.epoch ? head : undefined;
}

/** Mostly the newest few, which the head has; all pages only for a follower who is far behind. */
async function entriesSince(deps: Deps, head: Head, count: number): Promise<readonly Entry[]> {
  const news = head.count - count;
  if (news <= head.recent.length) return news > 0 ? head.recent.slice(-news) : [];
  const whole = await readJournal(head.taskId, () => {}, deps);
  return whole?.entries.slice(count) ?? [];
}
