import type { SettledAs } from "../../task/document.ts";

/** What became of one stream sequence. */
export const CLASSES = [
  "unexplained",
  "completed",
  "failed",
  "cancelled",
  "rescheduled",
  "waiting",
  "in_doubt",
  "duplicate",
  "conflict",
  "lost",
  "in_flight",
  "queued",
] as const satisfies readonly (SettledAs | "unexplained" | "in_flight" | "queued")[];
export type SequenceClass = (typeof CLASSES)[number];

/** What a report calls them: each says what a message came to, which is not what its task is by now. */
export const CLASS_NAMES: Readonly<Record<SequenceClass, string>> = {
  unexplained: "unexplained",
  completed: "completed its task",
  failed: "its task failed then",
  cancelled: "its task was cancelled",
  rescheduled: "a retry or a sleep followed",
  waiting: "a wait for an answer followed",
  in_doubt: "ended in doubt",
  duplicate: "duplicate, not run",
  conflict: "other work under its id, kept",
  lost: "lost by the stream, sent again",
  in_flight: "in flight",
  queued: "queued",
};

/** From and to, both inside. */
export type Range = readonly [number, number];

/** The sequences of one queue that a reconciliation has to explain. */
export interface Period {
  /** Sequences after `after` and up to `upTo`… */
  readonly after: number;
  readonly upTo: number;
  /** …and older ones that were still open the last time, in order. */
  readonly open: readonly Range[];
}

/** A book as it is kept until a reconciliation goes on. */
export interface KeptBook {
  readonly classes: Uint8Array;
  readonly owners: Uint32Array;
  readonly older: readonly number[];
}

interface OpenRange {
  readonly from: number;
  readonly to: number;
  readonly place: number;
}

/**
 * A class and an owner for every sequence of a period: five bytes each, whatever its tasks are. Owners are hashes of
 * task ids: they tell whether a document was looked at before, and show a sequence that two documents claim.
 */
export class SequenceBook {
  readonly period: Period;
  readonly #classes: Uint8Array;
  readonly #owners: Uint32Array;
  /** The open ones in their order, each range with its place, after those of the period. */
  readonly #open: readonly OpenRange[];
  /** Messages that are there and were explained before: their acks were lost. */
  readonly #older: Set<number>;

  constructor(period: Period, kept?: KeptBook) {
    this.period = period;
    let size = period.upTo - period.after;
    this.#open = period.open.map(([from, to]) => {
      const place = size;
      size += to - from + 1;
      return { from, to, place };
    });
    this.#classes = kept?.classes ?? new Uint8Array(size);
    this.#owners = kept?.owners ?? new Uint32Array(size);
    this.#older = new Set(kept?.older);
  }

  get size(): number {
    return this.#classes.length;
  }

  get kept(): KeptBook {
    return { classes: this.#classes, owners: this.#owners, older: [...this.#older] };
  }

  /** The message is there. Whatever a document says of it later counts more. True where it was explained before. */
  present(seq: number, as: "queued" | "in_flight"): boolean {
    const place = this.#place(seq);
    const isOlder = place === undefined && seq <= this.period.upTo;
    if (isOlder) this.#older.add(seq);
    if (place !== undefined && this.#classes[place] === 0) this.#classes[place] = CLASSES.indexOf(as);
    return isOlder;
  }

  isPresent(seq: number): boolean {
    const place = this.#place(seq);
    if (place === undefined) return this.#older.has(seq);
    return (this.#classes[place] as number) >= CLASSES.indexOf("in_flight");
  }

  /**
   * A document has settled it. False when another document had. A conflict is settled by two: by the task that it is no
   * message of, and by the letter that keeps it; the task's word counts.
   */
  explain(seq: number, as: SettledAs, owner: string): boolean {
    const place = this.#place(seq);
    this.#older.delete(seq);
    if (place === undefined) return true;
    const mine = hashOf(owner);
    const before = this.#owners[place] as number;
    if (before !== 0 && before !== mine && as !== "conflict") return false;
    this.#owners[place] = mine;
    this.#classes[place] = CLASSES.indexOf(as);
    return true;
  }

  /** Whether this document has settled it before. */
  isOwner(seq: number, owner: string): boolean {
    const place = this.#place(seq);
    return place !== undefined && this.#owners[place] === hashOf(owner);
  }

  classOf(seq: number): SequenceClass | undefined {
    const place = this.#place(seq);
    return place === undefined ? undefined : CLASSES[this.#classes[place] as number];
  }

  counts(): Record<SequenceClass, number> {
    const counts = new Array<number>(CLASSES.length).fill(0);
    for (const one of this.#classes) counts[one] = (counts[one] as number) + 1;
    return Object.fromEntries(CLASSES.map((name, i) => [name, counts[i]])) as Record<SequenceClass, number>;
  }

  /** Sequences of these classes, in order, as ranges. */
  ranges(...classes: readonly SequenceClass[]): Range[] {
    const wanted = new Set(classes.map((one) => CLASSES.indexOf(one)));
    const found: [number, number][] = [];
    const add = (seq: number, place: number) => {
      if (!wanted.has(this.#classes[place] as number)) return;
      const last = found.at(-1);
      if (last && last[1] === seq - 1) last[1] = seq;
      else found.push([seq, seq]);
    };
    for (const { from, to, place } of this.#open)
      for (let seq = from; seq <= to; seq++) add(seq, place + seq - from);
    for (let seq = this.period.after + 1; seq <= this.period.upTo; seq++)
      add(seq, seq - this.period.after - 1);
    return found;
  }

  #place(seq: number): number | undefined {
    if (seq > this.period.after && seq <= this.period.upTo) return seq - this.period.after - 1;
    for (let low = 0, high = this.#open.length - 1; low <= high; ) {
      const middle = (low + high) >> 1;
      const { from, to, place } = this.#open[middle] as OpenRange;
      if (seq >= from && seq <= to) return place + seq - from;
      if (seq < from) high = middle - 1;
      else low = middle + 1;
    }
    return undefined;
  }
}

export function countOf(ranges: readonly Range[]): number {
  return ranges.reduce((sum, [from, to]) => sum + to - from + 1, 0);
}

/** "3, 7-12, …" */
export function showRanges(ranges: readonly Range[], most = 10): string {
  const shown = ranges.slice(0, most).map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`));
  return ranges.length > most ? `${shown.join(", ")}, … (${countOf(ranges)} in all)` : shown.join(", ");
}

/** FNV-1a; never 0, which stands for nobody. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return hash >>> 0 || 1;
}
