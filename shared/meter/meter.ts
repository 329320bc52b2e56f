import { messageOf } from "../errors/errors.ts";
import { systemClock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { Meter } from "../ports/meter.ts";
import type { PartRecord, Revision, TaskStore } from "../ports/store.ts";
import { policies } from "../retry/policies.ts";
import { pause } from "../retry/retry.ts";
import { series } from "./counters.ts";
import { type CounterValues, countsIn, plus, type SpentBy, spentName, withoutOldDays } from "./values.ts";

/** Counts are kept in a few documents, so that functions that end at once seldom write the same one. */
const SHARDS = 8;
const shardName = (shard: number) => `counts-${shard}`;

/**
 * Counts in memory, and adds them up in the store when flushed. A process that is killed takes its last counts with it:
 * they are for alerts. Without anything counted, nothing is written.
 */
export function storeMeter(store: Pick<TaskStore, "getRecord" | "putRecord">, log: Log): Meter {
  let counts: Record<string, number> = {};
  /** Shards as this process has left them. One that somebody else has written since refuses, and is read. */
  const left = new Map<string, Shard>();
  const add = (name: string, by: number) => {
    counts[name] = (counts[name] ?? 0) + by;
  };
  const addSpent = (by: SpentBy, whose: string, usd: number) => add(spentName(Date.now(), by, whose), usd);
  return {
    count: (counter, labels, by = 1) => add(series(`${counter}_total`, labels), by),
    spent: ({ agent, owner }, usd) => {
      addSpent("agent", agent, usd);
      if (owner !== undefined) addSpent("owner", owner, usd);
    },
    flush: async () => {
      // What the store is asked while nothing happens is not worth a write.
      if (Object.keys(counts).every((name) => name.startsWith("pawl_store_"))) return;
      const added = counts;
      counts = {};
      try {
        for (let tries = 0; tries < policies.counters.tries; tries++) {
          const name = shardName(Math.floor(Math.random() * SHARDS));
          const { values, revision } = left.get(name) ?? (await readShard(store, name));
          // Another flush may come meanwhile, and an answer may be lost: only what is certain is remembered.
          left.delete(name);
          const sum = plus(withoutOldDays(values, Date.now()), added);
          const written = await store.putRecord(name, JSON.stringify(sum), revision);
          if (written.kind === "written") {
            left.set(name, { values: sum, revision: written.revision });
            return;
          }
          await pause({ clock: systemClock }, "counters", tries + 1);
        }
        counts = { ...plus(added, counts) };
      } catch (error) {
        // Not tried again at once: a write whose answer was lost would be counted twice.
        log("warn", "counts.lost", { reason: messageOf(error) });
      }
    },
  };
}

/** What a shard says; without a revision there is none yet. */
interface Shard {
  readonly values: CounterValues;
  readonly revision?: Revision | undefined;
}

async function readShard(store: Pick<TaskStore, "getRecord">, name: string): Promise<Shard> {
  const there = await store.getRecord(name);
  return { values: there ? (JSON.parse(there.text) as CounterValues) : {}, revision: there?.revision };
}

/** What each method of a store is counted as. */
const ASKED = {
  get: "read",
  getMany: "read",
  due: "read",
  list: "read",
  count: "read",
  position: "read",
  changes: "read",
  getHead: "read",
  getPart: "read",
  getRecord: "read",
  getRecords: "read",
  getText: "read",
  create: "write",
  replace: "write",
  attest: "write",
  putHead: "write",
  putPart: "write",
  removeParts: "write",
  putRecord: "write",
  putText: "write",
  removeTexts: "write",
  expire: "write",
  usage: "read",
  left: "read",
} as const satisfies Record<
  Exclude<keyof TaskStore, "name" | "isPart" | "pageSize" | "close">,
  "read" | "write"
>;

/** The same store, which counts what it is asked and how long that takes. */
export function metered(store: TaskStore, meter: Meter): TaskStore {
  const timed = (name: string, kind: "read" | "write") => {
    const work = store[name as keyof typeof ASKED] as (...args: unknown[]) => Promise<unknown>;
    return async (...args: unknown[]) => {
      const begun = performance.now();
      try {
        return await work(...args);
      } finally {
        meter.count(`store_${kind}s`, {});
        meter.count(`store_${kind}_ms`, {}, performance.now() - begun);
      }
    };
  };
  const counted = Object.entries(ASKED)
    // Some methods only some stores have.
    .filter(([name]) => store[name as keyof typeof ASKED])
    .map(([name, kind]) => [name, timed(name, kind)]);
  return { ...store, ...(Object.fromEntries(counted) as Partial<TaskStore>) };
}

/** All that was ever counted in this namespace. */
export async function readCounts(store: Pick<TaskStore, "getRecord" | "getRecords">): Promise<CounterValues> {
  const named = async (name: string): Promise<readonly (PartRecord | undefined)[]> =>
    (await store.getRecords?.(name)) ?? [await store.getRecord(name)];
  const shards = Array.from({ length: SHARDS }, (_, shard) => named(shardName(shard)));
  const found = (await Promise.all(shards)).flat();
  return found.reduce<CounterValues>(
    (sum, one) => (one ? plus(sum, countsIn(one.text, one.agent)) : sum),
    {},
  );
}
