import { PawlError, Unreadable } from "../../errors/errors.ts";
import type { Found, Stored, StoredRecord, TaskStore } from "../../ports/store.ts";
import type { Task } from "../../task/document.ts";
import { sweepAt } from "../../task/due.ts";
import { isTaskId } from "../../task/names.ts";
import { isFinal, states } from "../../task/table.ts";
import { atOnce } from "./at-once.ts";
import { MOST_CHARS, taskKey, whereKey } from "./bucket.ts";
import type { BucketStore } from "./bucket-store.ts";
import { manyReader } from "./changes.ts";
import { listed, readPlaces } from "./list.ts";

/** The buckets that a store is made of. */
export interface Buckets {
  /**
   * The one that all share: Pawl's own records and texts, where each task is, and the documents of before agents had buckets
   * of their own. None for an identity that is confined to an agent.
   */
  readonly shared?: BucketStore;
  /** Where records and texts are. */
  readonly own: BucketStore;
  /** Agents' identities do not reach the shared bucket: a message of a task that lies there would find no document. */
  readonly isOutOfReach?: boolean;
  /** Agents that have a bucket, as far as this identity may know. */
  agents(): Promise<readonly string[]>;
  /** An agent's bucket, made where it is missing and may be made. */
  open(agent: string): Promise<BucketStore>;
}

/** A task's place never changes while it is there; so many are remembered. */
const MOST_PLACES = 10_000;
/** Who has said where a task will be, and has not written it for so long, has died. */
const ABANDONED = 60_000;
/** Entries that say where tasks are, and are old: so many are looked at in one call. */
const MOST_OLD = 500;
const SHARED = "-";
const OPEN = states.filter((state) => state === "failed" || !isFinal({ state }));

/** Where a task is. Sure: it is said there, or it lies where no agent can write; else an agent may have put it there. */
interface Known {
  readonly store: BucketStore;
  readonly isSure: boolean;
}

interface Place {
  readonly store: BucketStore;
  readonly text: string;
  readonly revision: string;
}

/**
 * One store of several buckets: each agent's documents, with all that belongs to them, are in a bucket of its own, so that
 * an identity can be given that one and no other.
 *
 * Which agent an id belongs to is said in the shared bucket before the document is created: an id is one task's, whichever
 * agents are submitted to at once, and what an agent puts into its own bucket under another's id is found by nobody. What
 * is not said there (a child, or a message that was published directly, by an agent that can't say it) is looked for in
 * all of them. A document that lies in the shared bucket, from before, is read and written there.
 */
export function separateStore(buckets: Buckets, retention: number): TaskStore {
  const { shared, own, agents, open, isOutOfReach = false } = buckets;
  const places = new Map<string, Known>();
  const remember = (id: string, store: BucketStore, isSure = true) => {
    places.delete(id);
    if (places.size >= MOST_PLACES) places.delete(places.keys().next().value as string);
    // Who is confined has nothing that says more.
    places.set(id, { store, isSure: isSure || !shared });
  };
  const sureOf = (id: string): BucketStore | undefined => {
    const known = places.get(id);
    return known?.isSure ? known.store : undefined;
  };
  /** The agent whose task it is said to be. */
  const saidOf = async (id: string): Promise<string | undefined> =>
    shared && isTaskId(id)
      ? (await shared.values.get(`Looking for task ${id}`, whereKey(id)))?.text
      : undefined;
  /** Of what lies in an agent's bucket, which it may write: false where the id is said to be another's. */
  const isBelieved = async (id: string, agent: string, store: BucketStore): Promise<boolean> => {
    const said = await saidOf(id);
    if (said === agent) remember(id, store);
    return said === undefined || said === agent;
  };
  const ofAgents = async (): Promise<BucketStore[]> => Promise.all((await agents()).map(open));
  const everyone = async (): Promise<BucketStore[]> => [...(shared ? [shared] : []), ...(await ofAgents())];
  const textIn = async (store: BucketStore, id: string): Promise<Place | undefined> => {
    const found = await store.values.get(`Reading task ${id}`, taskKey(id));
    return found && { store, ...found };
  };

  /** Where a task is that nobody has said anything of. In two places, none of them can be believed. */
  const search = async (id: string, among: readonly BucketStore[]): Promise<Place | undefined> => {
    const found = (await Promise.all(among.map((store) => textIn(store, id)))).filter(
      (one) => one !== undefined,
    );
    const [first, second] = found;
    if (!first || !second) return first;
    const { text, revision } = first;
    const why = `it lies in ${found.map(({ store }) => store.name).join(" and in ")}`;
    throw new Unreadable(`Task ${id}`, { key: id, why, text, revision });
  };
  const find = async (id: string): Promise<Place | undefined> => {
    if (!isTaskId(id)) return undefined;
    const known = places.get(id);
    // It may have been said since that it is another's.
    const [there, said] = known
      ? await Promise.all([textIn(known.store, id), known.isSure ? undefined : saidOf(id)])
      : [];
    if (there && said === undefined) return there;
    places.delete(id);
    if (shared) return findBySaid(shared, id);
    return foundIn(await search(id, await ofAgents()), id);
  };
  const foundIn = (found: Place | undefined, id: string, isSure = false): Place | undefined => {
    if (found) remember(id, found.store, isSure);
    return found;
  };
  const findBySaid = async (whole: BucketStore, id: string): Promise<Place | undefined> => {
    const [said, there, names] = await Promise.all([
      whole.values.get(`Looking for task ${id}`, whereKey(id)),
      textIn(whole, id),
      agents(),
    ]);
    if (said && names.includes(said.text)) {
      const found = await textIn(await open(said.text), id);
      if (found) return foundIn(found, id, true);
    }
    if (there) return foundIn(there, id, true);
    return foundIn(await search(id, await Promise.all(names.map(open))), id);
  };
  /** Where what belongs to a task goes. */
  const placeOf = async (id: string): Promise<BucketStore> => sureOf(id) ?? (await find(id))?.store ?? own;
  /** Where a document is written that names its agent: nowhere but in that one's bucket, or where it was read of before. */
  const placeFor = async (id: string, agent: string): Promise<BucketStore> => {
    const known = sureOf(id);
    return known !== undefined && known === shared ? known : open(agent);
  };
  /** What belongs to a task, also where its document is gone. */
  const seek = async <T>(
    id: string,
    ask: (store: BucketStore) => Promise<T | undefined>,
  ): Promise<T | undefined> => {
    const known = sureOf(id);
    if (known) return ask(known);
    const place = (await find(id))?.store;
    if (place) return ask(place);
    const found = await Promise.all((await everyone()).map(ask));
    return found.find((one) => one !== undefined);
  };

  /**
   * A document under an id that is said to be another's can't be read as that: its key names the bucket too, or whoever
   * knows documents by their ids would take it for the other's.
   */
  const believed = async (found: Found, agent: string, store: BucketStore): Promise<Found> => {
    const { key, revision } = found;
    if ("unreadable" in found || (await isBelieved(key, agent, store))) return found;
    const why = `it lies in the bucket of ${agent}, and is another agent's task`;
    return { key: `${agent}/${key}`, revision, unreadable: why };
  };

  /** Says where a task will be. False where another agent has its id. */
  const say = async (whole: BucketStore, { id, agent }: Task): Promise<boolean> => {
    const what = `Creating task ${id}`;
    const [said, there] = await Promise.all([whole.values.put(what, whereKey(id), agent), textIn(whole, id)]);
    if (there) return false;
    if (said.kind === "written") return true;
    const other = await whole.values.get(what, whereKey(id));
    if (other?.text === agent) return true;
    if (!other) return say(whole, { id, agent } as Task);
    if ((await agents()).includes(other.text) && (await textIn(await open(other.text), id))) return false;
    const since = await whole.bucket.writtenFrom(what, Number(other.revision));
    if (since === undefined || Date.now() - since < ABANDONED)
      throw new PawlError(
        "store_unavailable",
        `${what}: a task of ${other.text} is being created under this id`,
      );
    return (await whole.values.put(what, whereKey(id), agent, other.revision)).kind === "written";
  };

  /** What the places of tasks say that are gone. They were said before their documents were written, and stay as they are. */
  const forget = async (whole: BucketStore, now: number): Promise<void> => {
    const what = "Removing expired tasks";
    const { bucket } = whole;
    const names = await agents();
    for await (const one of bucket.scan(what, [whereKey("*")], { limit: MOST_OLD })) {
      if (one.writtenAt > now - retention) return;
      const id = one.key.slice(whereKey("").length);
      const isThere = names.includes(one.text()) && (await textIn(await open(one.text()), id));
      if (!isThere) await bucket.purge(what, one.key, one.revision);
    }
  };

  const get: TaskStore["get"] = async (id) => (await find(id))?.store.get(id);
  const attest = own.attest && {
    attest: (async (claim, seen) => {
      const place = await placeFor(claim.id, claim.agent);
      // Of one copy, nothing that is read there is stale.
      return place.attest ? place.attest(claim, seen) : (seen ?? "1");
    }) satisfies TaskStore["attest"],
  };

  return {
    name: `${own.name}, and each agent's own`,
    ...(!shared && { isPart: true }),
    pageSize: own.pageSize,
    get,
    create: async (task) => {
      if (shared && !(await say(shared, task))) return { kind: "refused" };
      const store = await open(task.agent);
      const created = await store.create(task);
      if (created.kind === "written") remember(task.id, store);
      return created;
    },
    // Read nowhere before, it is where a new one is; it is refused there where that is wrong.
    replace: async (task, seen) => (await placeFor(task.id, task.agent)).replace(task, seen),
    ...attest,
    due: async (agent, state, { after: first, until }, limit) => {
      const names = await agents();
      const store = names.includes(agent) ? await open(agent) : undefined;
      const stores = [...(shared && !isOutOfReach ? [shared] : []), ...(store ? [store] : [])];
      const at = ({ task }: Stored) => sweepAt(task) ?? 0;
      for (let after = first; ; ) {
        const pages = await Promise.all(stores.map((one) => one.due(agent, state, { after, until }, limit)));
        const found = await Promise.all(
          pages.map(async ({ tasks }, i) => {
            const one = stores[i] as BucketStore;
            if (one !== shared) {
              const believed = await atOnce(tasks, ({ task }) => isBelieved(task.id, agent, one));
              return tasks.filter((_, j) => believed[j]);
            }
            for (const { task } of tasks) remember(task.id, one);
            return tasks;
          }),
        );
        const all = found.flat();
        const tasks = all.toSorted((a, b) => at(a) - at(b)).slice(0, limit);
        const isCut = pages.some((page) => page.isCut) || all.length > tasks.length;
        if (tasks.length > 0 || !isCut) return { tasks, isCut };
        // Nothing on it is believed. A page that is empty would not say from where to go on.
        after = Math.max(after + 1, ...pages.flatMap((page) => page.tasks.map(at)));
      }
    },
    list: async (filter, limit, cursor) => {
      const before = cursor === undefined ? undefined : readPlaces(cursor);
      const names = (await agents()).filter(
        (name) => (filter.agent ?? name) === name && (filter.agents?.includes(name) ?? true),
      );
      const stores = await Promise.all(names.map(open));
      const all = [
        ...(shared ? [{ name: SHARED, store: shared }] : []),
        ...stores.map((store, i) => ({ name: names[i] as string, store })),
      ];
      if (all.length === 0) return { tasks: [] };
      const sources = all.map(({ name, store }) => ({
        name,
        newest: store.newest,
        found: store.bucket.found,
        before: before?.get(name),
      }));
      return listed(sources, filter, limit);
    },
    position: async () => {
      const names = await agents();
      const all = await Promise.all(
        [own, ...(await Promise.all(names.map(open)))].map((one) => one.position()),
      );
      const [first, ...rest] = all;
      const cursors = Object.fromEntries(rest.map(({ cursor }, i) => [names[i] as string, cursor]));
      const now = Math.max(...all.map(({ now }) => now));
      return { cursor: JSON.stringify({ ...cursors, ...(shared && { [SHARED]: first?.cursor }) }), now };
    },
    /** One bucket after the other, each from where it was left. */
    changes: async (after, limit) => {
      const cursors = after === undefined ? {} : readCursors(after);
      const names = [...(shared ? [SHARED] : []), ...(await agents())];
      const documents = [];
      let chars = 0;
      for (const name of names) {
        if (documents.length >= limit || chars > MOST_CHARS)
          return { documents, cursor: JSON.stringify(cursors), isLast: false };
        const store = name === SHARED ? (shared as BucketStore) : await open(name);
        const page = await store.changes(cursors[name], limit - documents.length);
        cursors[name] = page.cursor;
        documents.push(
          ...(await atOnce(page.documents, async (one) => {
            if (store === shared && "task" in one) remember(one.key, store);
            return store === shared ? one : believed(one, name, store);
          })),
        );
        for (const one of page.documents) chars += "task" in one ? JSON.stringify(one.task).length : 0;
        if (!page.isLast) return { documents, cursor: JSON.stringify(cursors), isLast: false };
      }
      return { documents, cursor: JSON.stringify(cursors), isLast: true };
    },
    getMany: manyReader(async (id) => {
      const found = await find(id);
      return found && { text: found.text, revision: found.revision, found: found.store.bucket.found };
    }),
    getHead: (id) => seek(id, (store) => store.getHead(id)),
    putHead: async (head, seen) => (await placeOf(head.taskId)).putHead(head, seen),
    putPart: async (id, name, text) => (await placeOf(id)).putPart(id, name, text),
    getPart: (id, name) => seek(id, (store) => store.getPart(id, name)),
    removeParts: async (id, isOld) => (await placeOf(id)).removeParts(id, isOld),
    expire: async (now, limit) => {
      let removed = 0;
      for (const store of await everyone())
        if (removed < limit) removed += await store.expire(now, limit - removed);
      if (shared) await forget(shared, now);
      return removed;
    },
    getRecord: own.getRecord,
    putRecord: own.putRecord,
    getRecords: async (name) => {
      const found = await Promise.all((await everyone()).map((store) => store.getRecord(name)));
      return found.filter((one): one is StoredRecord => one !== undefined);
    },
    putText: own.putText,
    getText: own.getText,
    removeTexts: own.removeTexts,
    ...(shared && { left: (most: number) => countOpen(shared, most) }),
    usage: async (agent) => {
      const isThere = (await agents()).includes(agent);
      return (isThere ? await open(agent) : own).usage?.(agent);
    },
    close: own.close,
  };
}

/** As one bucket's place it is a cursor of before agents had buckets: all of theirs is new since. */
function readCursors(cursor: string): Record<string, string> {
  if (!cursor.startsWith("{")) return { [SHARED]: cursor };
  try {
    return JSON.parse(cursor) as Record<string, string>;
  } catch {
    throw new PawlError(
      "input_invalid",
      `${JSON.stringify(cursor.slice(0, 200))} is not a cursor of changes`,
    );
  }
}

/** Open tasks of a bucket, up to so many. */
async function countOpen(store: BucketStore, most: number): Promise<number> {
  let count = 0;
  for (let cursor: string | undefined; ; ) {
    const page = await store.list({ states: OPEN }, most - count, cursor);
    count += page.tasks.length;
    cursor = page.cursor;
    if (cursor === undefined || count >= most) return count;
  }
}
