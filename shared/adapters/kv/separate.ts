import { PawlError } from "../../errors/errors.ts";
import type { Found, PartRecord, Stored, TaskStore } from "../../ports/store.ts";
import { sweepAt } from "../../task/due.ts";
import { isFinal, states } from "../../task/table.ts";
import { atOnce } from "../many.ts";
import { MOST_CHARS, SHARED, taskKey } from "./bucket.ts";
import type { BucketStore, Buckets } from "./bucket-store.ts";
import { manyReader, placesIn, wrongCursor } from "./changes.ts";
import { fullest } from "./fill.ts";
import { finder } from "./find.ts";
import { listed, readPlaces } from "./list.ts";
import { ABANDONED, saidPlaces } from "./said.ts";

const OPEN = states.filter((state) => state === "failed" || !isFinal({ state }));

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
  const said = shared && saidPlaces(shared, { agents, open }, retention);
  const { find, remember, sureOf, isBelieved } = finder(buckets, said);
  const everyone = async (): Promise<BucketStore[]> => [
    ...(shared ? [shared] : []),
    ...(await Promise.all((await agents()).map(open))),
  ];
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

  const get: TaskStore["get"] = async (id) => {
    const found = await find(id);
    return found?.store.read(id, found);
  };
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
      const begun = Date.now();
      if (said && !(await said.say(task))) return { kind: "refused" };
      const store = await open(task.agent);
      const created = await store.create(task);
      if (created.kind === "refused") return created;
      // Somebody may have taken it for abandoned by then.
      if (said && Date.now() - begun > ABANDONED / 2 && !(await said.keep(task))) {
        const what = `Creating task ${task.id}`;
        await store.bucket.purge(what, taskKey(task.id), Number(created.revision));
        throw new PawlError("store_unavailable", `${what}: it took too long, and another has its id`);
      }
      remember(task.id, store);
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
    // Each by itself: what an agent has put into its bucket must not keep what others have.
    expire: async (now, limit) => {
      let removed = 0;
      const failures: unknown[] = [];
      const attempt = (work: () => Promise<unknown>) => work().catch((error) => failures.push(error));
      const opening = [async () => shared, ...(await agents()).map((name) => () => open(name))];
      for (const opened of opening)
        if (removed < limit)
          await attempt(async () => {
            removed += (await (await opened())?.expire(now, limit - removed)) ?? 0;
          });
      await attempt(async () => said?.forget(now));
      if (failures.length > 0) throw failures[0];
      return removed;
    },
    getRecord: async (name, agent) => {
      // Nothing lies in a bucket that nobody has made.
      if (agent !== undefined && !(await agents()).includes(agent)) return undefined;
      return (agent === undefined ? own : await open(agent)).getRecord(name);
    },
    putRecord: async (name, text, seen, agent) =>
      (agent === undefined ? own : await open(agent)).putRecord(name, text, seen),
    getRecords: async (name) => {
      const names = await agents();
      const read = async (store: BucketStore, agent?: string): Promise<PartRecord[]> => {
        const found = await store.getRecord(name);
        return found ? [{ ...found, ...(agent !== undefined && { agent }) }] : [];
      };
      const ofAgents = names.map(async (agent) => read(await open(agent), agent));
      return (await Promise.all([...(shared ? [read(shared)] : []), ...ofAgents])).flat();
    },
    putText: own.putText,
    getText: own.getText,
    removeTexts: own.removeTexts,
    ...(shared && { left: (most: number) => countOpen(shared, most) }),
    usage: async (agent) => {
      const store = (await agents()).includes(agent) ? await open(agent) : undefined;
      // A submit writes into both.
      const fills = await Promise.all([store?.usage?.(agent), (store ? shared : own)?.usage?.(agent)]);
      return fullest(...fills);
    },
    close: own.close,
  };
}

/** As one bucket's place it is a cursor of before agents had buckets: all of theirs is new since. */
function readCursors(cursor: string): Record<string, string> {
  const places = placesIn(cursor);
  if (places) return { ...places };
  if (!cursor.startsWith("{")) return { [SHARED]: cursor };
  throw wrongCursor(cursor);
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
