import { PawlError } from "../../errors/errors.ts";
import type { StoredRecord } from "../../ports/store.ts";
import type { Task } from "../../task/document.ts";
import { atOnce } from "../many.ts";
import { taskKey, whereKey } from "./bucket.ts";
import type { BucketStore } from "./bucket-store.ts";
import { type Walk, walkFrom } from "./expire.ts";
import type { Scanned } from "./scan.ts";

/** Who has said where a task will be, and has not written it for so long, has died. */
export const ABANDONED = 60_000;
/** Entries that are old: so many are looked at in one call. */
const MOST_OLD = 500;
const WALK = "expiry-places";

export interface AgentBuckets {
  agents(): Promise<readonly string[]>;
  open(agent: string): Promise<BucketStore>;
}

/** Which agent's each id is, said in the bucket that all share, before there is a document. */
export interface SaidPlaces {
  get(id: string): Promise<StoredRecord | undefined>;
  /** Says whose a task will be. False where there is one of this id. */
  say(task: Pick<Task, "id" | "agent">): Promise<boolean>;
  /** Says it again, of one that is there now. False where another has the id by now. */
  keep(task: Pick<Task, "id" | "agent">): Promise<boolean>;
  /** Removes what is said of tasks that are gone. It was said before they were written, and stays as it is. */
  forget(now: number): Promise<void>;
}

export function saidPlaces(
  shared: BucketStore,
  { agents, open }: AgentBuckets,
  retention: number,
): SaidPlaces {
  const { values, bucket } = shared;
  const isIn = async (store: BucketStore, id: string) =>
    (await store.values.get(`Reading task ${id}`, taskKey(id))) !== undefined;
  const isAt = async (agent: string, id: string) =>
    (await agents()).includes(agent) && (await isIn(await open(agent), id));
  const get: SaidPlaces["get"] = (id) => values.get(`Looking for task ${id}`, whereKey(id));

  /** And the first that is too young. */
  const oldFrom = async (what: string, from: number, oldest: number) => {
    const old: Scanned[] = [];
    for await (const one of bucket.scan(what, [whereKey("*")], { from, limit: MOST_OLD })) {
      if (one.writtenAt > oldest) return { old, young: one.revision };
      old.push(one);
    }
    return { old };
  };

  return {
    get,
    say: async ({ id, agent }) => {
      const what = `Creating task ${id}`;
      const [first, isShared] = await Promise.all([values.put(what, whereKey(id), agent), isIn(shared, id)]);
      if (isShared) return false;
      for (let written = first; written.kind !== "written"; ) {
        const there = await get(id);
        const isOthers = there !== undefined && there.text !== agent;
        // Before its document is looked for: whoever said it so long ago, and lives, looks here again after writing one.
        const since = isOthers ? await bucket.writtenFrom(what, Number(there.revision)) : undefined;
        const isYoung = since === undefined || Date.now() - since < ABANDONED;
        if (there && (await isAt(there.text, id))) return false;
        if (isOthers && isYoung)
          throw new PawlError(
            "store_unavailable",
            `${what}: a task of ${there.text} is being created under this id`,
          );
        // Also where it is said already: what is old may be taken by another, or forgotten, until the document is there.
        written = await values.put(what, whereKey(id), agent, there?.revision);
      }
      return true;
    },
    keep: async ({ id, agent }) => {
      for (;;) {
        const there = await get(id);
        if (there && there.text !== agent) return false;
        const written = await values.put(`Creating task ${id}`, whereKey(id), agent, there?.revision);
        if (written.kind === "written") return true;
      }
    },
    forget: async (now) => {
      const what = "Removing expired tasks";
      const oldest = now - retention;
      const kept = await shared.getRecord(WALK);
      const { begun, next: from } = walkFrom(kept?.text, now);
      let next = from;
      let isThrough = ((await bucket.writtenFrom(what, next)) ?? now) > oldest;
      if (!isThrough) {
        const { old, young } = await oldFrom(what, next, oldest);
        await atOnce(old, async ({ key, revision, text }) => {
          const isThere = await isAt(text(), key.slice(whereKey("").length));
          if (!isThere) await bucket.purge(what, key, revision);
        });
        isThrough = old.length < MOST_OLD;
        next = young ?? (old.at(-1)?.revision ?? next - 1) + 1;
      }
      const walk: Walk = { next, begun, isThrough };
      if (JSON.stringify(walk) !== kept?.text)
        await shared.putRecord(WALK, JSON.stringify(walk), kept?.revision);
    },
  };
}
