import type { Counts, HistoryEntry, Task } from "./document.ts";

export const NO_COUNTS: Counts = {
  writes: 0,
  retries: 0,
  takeovers: 0,
  failed: 0,
  handOffs: 0,
  suspensions: 0,
  discarded: 0,
};

/** Which count an event adds to, beside `writes`. */
const COUNTED: Readonly<Record<string, keyof Counts>> = {
  retry: "retries",
  hold: "retries",
  takeover: "takeovers",
  fail: "failed",
  exhaust: "failed",
  deadLetter: "failed",
  handOff: "handOffs",
  sleep: "suspensions",
  wait: "suspensions",
  doubt: "suspensions",
};

export function countsOf(task: Pick<Task, "counts" | "history">): Counts {
  return { ...NO_COUNTS, ...keptCounts(task) };
}

/** As its document has them. One of an earlier version has none: then as much as its history still shows. */
export function keptCounts({ counts, history }: Pick<Task, "counts" | "history">): Partial<Counts> {
  return counts ?? history.reduce<Partial<Counts>>(countsAfter, {});
}

/** After one more event. */
export function countsAfter(
  counts: Partial<Counts>,
  { event, state }: Pick<HistoryEntry, "event" | "state">,
): Partial<Counts> {
  const isGivenUp = event === "resolve" && state === "failed";
  const name = isGivenUp ? "failed" : COUNTED[event];
  const writes = (counts.writes ?? 0) + 1;
  return { ...counts, writes, ...(name && { [name]: (counts[name] ?? 0) + 1 }) };
}

/** After a redrive from scratch: a journal of so many entries is as good as none. */
export function countsWithout(counts: Partial<Counts>, entries: number): Partial<Counts> {
  return entries === 0 ? counts : { ...counts, discarded: (counts.discarded ?? 0) + entries };
}
