import type { TaskStore } from "../ports/store.ts";
import { readCounts } from "./meter.ts";
import { type CounterValues, type SpentBy, spentName } from "./values.ts";

/** What owners and agents have spent since midnight UTC, in dollars. */
export interface Spent {
  readonly owners: ReadonlyMap<string, number>;
  readonly agents: ReadonlyMap<string, number>;
}

/**
 * By what runners have flushed, each every few seconds: one that is killed takes its last dollars with it, and a task
 * that runs has not said yet what it spends.
 */
export async function readSpent(
  store: Pick<TaskStore, "getRecord" | "getRecords">,
  now: number,
): Promise<Spent> {
  return spentOf(await readCounts(store), now);
}

/** The same, by counts that somebody has read. */
export function spentOf(counts: CounterValues, now: number): Spent {
  return { owners: ofDay(counts, now, "owner"), agents: ofDay(counts, now, "agent") };
}

function ofDay(counts: CounterValues, now: number, kind: SpentBy): ReadonlyMap<string, number> {
  const prefix = spentName(now, kind, "");
  const own = Object.entries(counts).filter(([name]) => name.startsWith(prefix));
  return new Map(own.map(([name, usd]) => [name.slice(prefix.length), usd]));
}
