import { messageOf, PawlError } from "../../errors/errors.ts";
import type { DuePage, Stored, TaskStore, WriteResult } from "../../ports/store.ts";
import type { Task } from "../../task/document.ts";
import { ORPHAN_AFTER, sweepAt } from "../../task/due.ts";
import type { Bucket } from "./bucket.ts";
import { MOST_CHARS, taskIdOf, taskKey } from "./bucket.ts";
import type { Values } from "./lease.ts";

/** One for each state: a writer that dies before its document leaves the hint of the state that the task is still in. */
const dueKey = (agent: string, state: string, id: string) => `due.${agent}.${state}.${id}`;
/** An index entry that leads nowhere is removed when it is this old; its document may be on its way until then. */
const STALE_ENTRY = 45_000;
const AT_ONCE = 32;

/** A hint: this task may be in this state, and may want to be looked at then. */
interface Entry {
  readonly id: string;
  readonly state: string;
  readonly at: number;
  readonly revision: number;
  readonly isOld: boolean;
  leadsNowhere: boolean;
}

/**
 * The index of what wants to be looked at: NATS KV knows no queries.
 *
 * Writing. A document's entry is written first: one too many is a hint that leads nowhere, one too few a task forgotten.
 * Until the document is written an earlier time that stands there stays: the write may be refused, or its writer die, and
 * then what is there still wants to be looked at when it did before.
 *
 * Removing. Nearly every entry leads nowhere in the end, because a task that is done leaves the entry of its dispatch.
 * A purge takes any number of them in one request, but only from the front of the stream. So the few in front that
 * still lead somewhere are written again, which moves them to the end, and then the front is purged. Where many of them
 * stand in front, what leads nowhere stays until there is more of it: a removed entry never costs more than one write.
 * - A writer has written its entry and not yet its document: the entry is young, and counts as one that leads somewhere.
 *   Who took longer than half that time writes it again after its document.
 * - An entry is written by somebody else after it was read here: that moved it behind all that was read, so the purge
 *   spares it; and writing it again is refused, because it is guarded by what was read, so its newer time stays.
 * - Two sweeps at once: each purges only what it has read and found to lead nowhere, or has moved. What the other moved
 *   can't be moved again, and is not in front any more, or is young.
 * - A crash between the moves and the purge: what leads nowhere is still in front, for the next sweep.
 * - A move whose outcome is unknown: nothing is purged.
 */
export function dueIndex(bucket: Bucket, values: Values) {
  const hint = async (task: Task, at: number) => {
    const what = `Indexing task ${task.id}`;
    const key = dueKey(task.agent, task.state, task.id);
    for (;;) {
      const seen = await values.get(what, key);
      const there = Number(seen?.text);
      const time = there < at ? there : at;
      const written = await values.put(what, key, String(time), seen?.revision);
      if (written.kind === "refused") continue;
      /** The document is written: its own time holds, unless somebody has written since. */
      const settle = async () => {
        if (time < at) await values.put(what, key, String(at), written.revision);
      };
      return { settle };
    }
  };

  /**
   * Of a new task there is no entry yet. Both are sent at once, and the server takes them in this order. Where the entry is
   * not, nobody is told that the document is there before there is another: who dies until then has accepted nothing. Whoever
   * is told nothing creates it again.
   */
  const indexedNew = async (task: Task, at: number, write: () => Promise<WriteResult>) => {
    const key = dueKey(task.agent, task.state, task.id);
    const [entry, document] = await Promise.allSettled([
      values.put(`Indexing task ${task.id}`, key, String(at)),
      write(),
    ]);
    const isIndexed = entry.status === "fulfilled" && entry.value.kind === "written";
    // Also where the document seems not to be written: it may be, and nobody comes here again who finds it there.
    const later = isIndexed ? undefined : await hint(task, at).catch((error: unknown) => error as Error);
    if (document.status === "rejected") throw document.reason;
    if (later instanceof Error)
      throw new PawlError("store_unavailable", `Indexing task ${task.id}: ${messageOf(later)}`, {
        cause: later,
      });
    // An entry that is too early costs a look.
    if (document.value.kind === "written") await later?.settle().catch(() => {});
    return document.value;
  };

  /** Writes a document with its entry. */
  const indexed = async (task: Task, write: () => Promise<WriteResult>): Promise<WriteResult> => {
    const at = sweepAt(task);
    // A claim leaves the entry of the dispatch that it follows.
    if (at === undefined || (task.state === "running" && task.history.length > 1)) return write();
    if (task.history.length === 1) return indexedNew(task, at, write);
    const begun = Date.now();
    const { settle } = await hint(task, at);
    const result = await write();
    if (Date.now() - begun > STALE_ENTRY / 2) await hint(task, at);
    // An entry that is too early costs a look.
    else if (result.kind === "written") await settle().catch(() => {});
    return result;
  };

  const due: TaskStore["due"] = async (agent, state, { after, until }, limit) => {
    const what = `Looking for due tasks of ${agent}`;
    // A claim leaves the entry of the dispatch that it follows.
    const states = state === "running" ? ["dispatched", "running"] : [state];
    const fronts = await Promise.all(states.map((one) => entriesOf(bucket, what, agent, one, until)));
    const inRange = ({ at }: Entry) => at <= until && (state === "running" || at > after);
    const hints = Map.groupBy(
      fronts
        .flat()
        .filter(inRange)
        .sort((a, b) => a.at - b.at),
      ({ id }) => taskKey(id),
    );
    const tasks: Stored[] = [];
    let chars = 0;
    const isFull = () => tasks.length >= limit || chars > MOST_CHARS;
    for await (const { keys, found } of bucket.pick(what, [...hints.keys()])) {
      for (const key of keys) {
        const value = found.get(key);
        const there = value && bucket.found(taskIdOf(key), value.revision, value.text());
        // The index entries of an unreadable document are kept: somebody may mend it.
        if (there && "unreadable" in there) continue;
        const task = there?.task;
        for (const entry of hints.get(key) ?? []) entry.leadsNowhere = entry.isOld && !leads(entry, task);
        const at = task && sweepAt(task);
        const isDue = task?.state === state && at !== undefined && at > after && at <= until;
        if (!there || !isDue || isFull()) continue;
        tasks.push({ task: there.task, revision: there.revision });
        chars += value?.bytes ?? 0;
      }
      if (isFull()) break;
    }
    for (const entries of fronts) await tidy(bucket, what, agent, entries);
    return { tasks, isCut: isFull() } satisfies DuePage;
  };

  return { indexed, due };
}

/**
 * In the order of the stream. How old they are is the server's word. A caller that looks for what becomes due within an
 * orphan's time makes none of them older; one that looks further ahead has a clock of its own.
 */
async function entriesOf(
  bucket: Bucket,
  what: string,
  agent: string,
  state: string,
  until: number,
): Promise<Entry[]> {
  const prefix = dueKey(agent, state, "");
  const ahead = Math.max(0, until - Date.now() - ORPHAN_AFTER);
  const entries: Entry[] = [];
  for await (const { key, revision, writtenAt, readAt, text } of bucket.scan(what, [`${prefix}*`])) {
    const isOld = readAt + ahead - writtenAt >= STALE_ENTRY;
    const id = key.slice(prefix.length);
    entries.push({ id, state, at: Number(text()), revision, isOld, leadsNowhere: false });
  }
  return entries;
}

/** An entry that leads to another state is no hint any more; one of a dispatch still is while the task runs. */
function leads({ state }: Entry, task: Task | undefined): boolean {
  if (!task || sweepAt(task) === undefined) return false;
  return task.state === state || (state === "dispatched" && task.state === "running");
}

/** Removes what leads nowhere, as far from the front as it saves more than it costs. */
async function tidy(bucket: Bucket, what: string, agent: string, entries: readonly Entry[]): Promise<void> {
  let saved = 0;
  let most = 0;
  let length = 0;
  entries.forEach((entry, i) => {
    saved += entry.leadsNowhere ? 1 : -1;
    if (saved > most) [most, length] = [saved, i + 1];
  });
  const front = entries.slice(0, length);
  const last = front.at(-1);
  if (!last) return;
  const moved = front.filter((entry) => !entry.leadsNowhere);
  try {
    for (let i = 0; i < moved.length; i += AT_ONCE)
      await Promise.all(
        moved
          .slice(i, i + AT_ONCE)
          .map(({ id, state, at, revision }) =>
            bucket.guarded(what, () => bucket.kv.update(dueKey(agent, state, id), String(at), revision)),
          ),
      );
    await bucket.purge(what, dueKey(agent, last.state, "*"), last.revision);
  } catch {
    // Stale entries are still there for the next sweep, and the tasks that were found must not wait for it.
  }
}
