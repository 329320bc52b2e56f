import { type Cost, NO_COST, plus } from "../../journal/cost.ts";
import type { DuplicateLayer } from "../../task/document.ts";
import { CLASSES, type SequenceClass } from "../books/sequences.ts";

/** How often something took how long, in steps of a tenth: small, and can be added up. */
export type Histogram = Readonly<Record<string, number>>;

const STEP = Math.log(1.1);

/** In place: there are millions of them. */
export function addTime(histogram: Record<string, number>, ms: number): void {
  const bucket = String(Math.ceil(Math.log(Math.max(1, ms)) / STEP));
  histogram[bucket] = (histogram[bucket] ?? 0) + 1;
}

/** The upper end of the bucket that has it: at most a tenth too much. */
export function percentile(histogram: Histogram, share: number): number | undefined {
  const buckets = Object.entries(histogram).sort(([a], [b]) => Number(a) - Number(b));
  const all = buckets.reduce((sum, [, count]) => sum + count, 0);
  let seen = 0;
  for (const [bucket, count] of buckets) {
    seen += count;
    if (seen >= share * all) return Math.round(Math.exp(Number(bucket) * STEP));
  }
  return undefined;
}

/** What an agent did in a period. Everything in it adds up. */
export interface Tally {
  /** New sequences, by what became of them; and older ones that were open before. */
  readonly classes: Readonly<Record<SequenceClass, number>>;
  readonly carriedOver: number;
  /** Tasks that came, and that ended. */
  readonly created: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly duplicates: Readonly<Record<DuplicateLayer, number>>;
  /** Redeliveries of settled messages, acked without running anything. */
  readonly skipped: number;
  /** Completions beyond the first of a task. */
  readonly executedTwice: number;
  /** Starts: claims that were about to run the handler, also where they died before its first line. */
  readonly executions: number;
  readonly takeovers: number;
  readonly retries: number;
  readonly deadLetters: Readonly<Record<string, number>>;
  readonly queuedMs: Histogram;
  /** Of one execution: a task that is retried or waits has several. */
  readonly runMs: Histogram;
  /** Of tasks that were completed: from their submit to their completion, and what each cost in its whole life. */
  readonly wholeMs: Histogram;
  readonly wholeUsd: number;
  readonly spent: Cost;
  readonly respent: Cost;
  readonly saved: Cost;
  /** Document writes, and journal writes, that the period's tasks took. */
  readonly writes: number;
}

/** A tally while it is being counted. */
export type Counting = { -readonly [Key in keyof Tally]: Writable<Tally[Key]> };
type Writable<T> = T extends object ? { -readonly [Key in keyof T]: T[Key] } : T;

const zero = <Key extends string>(keys: readonly Key[]) =>
  Object.fromEntries(keys.map((key) => [key, 0])) as Record<Key, number>;

export const NO_TALLY: Tally = {
  classes: zero(CLASSES),
  carriedOver: 0,
  created: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  duplicates: { window: 0, subject: 0, document: 0, key: 0 },
  skipped: 0,
  executedTwice: 0,
  executions: 0,
  takeovers: 0,
  retries: 0,
  deadLetters: {},
  queuedMs: {},
  runMs: {},
  wholeMs: {},
  wholeUsd: 0,
  spent: NO_COST,
  respent: NO_COST,
  saved: NO_COST,
  writes: 0,
};

/** Either may be of a report that an earlier version wrote: a figure that it did not count is none. */
export function added(one: Tally, other: Tally): Tally {
  const [a, b] = [
    { ...NO_TALLY, ...one },
    { ...NO_TALLY, ...other },
  ];
  const sum = (key: keyof Tally) => (a[key] as number) + (b[key] as number);
  return {
    classes: merged(a.classes, b.classes) as Tally["classes"],
    carriedOver: sum("carriedOver"),
    created: sum("created"),
    completed: sum("completed"),
    failed: sum("failed"),
    cancelled: sum("cancelled"),
    duplicates: merged(a.duplicates, b.duplicates) as Tally["duplicates"],
    skipped: sum("skipped"),
    executedTwice: sum("executedTwice"),
    executions: sum("executions"),
    takeovers: sum("takeovers"),
    retries: sum("retries"),
    deadLetters: merged(a.deadLetters, b.deadLetters),
    queuedMs: merged(a.queuedMs, b.queuedMs),
    runMs: merged(a.runMs, b.runMs),
    wholeMs: merged(a.wholeMs, b.wholeMs),
    wholeUsd: sum("wholeUsd"),
    spent: plus(a.spent, b.spent),
    respent: plus(a.respent, b.respent),
    saved: plus(a.saved, b.saved),
    writes: sum("writes"),
  };
}

/** By key, in one order: what is equal is written the same. */
export function merged(
  a: Readonly<Record<string, number>>,
  b: Readonly<Record<string, number>>,
): Record<string, number> {
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  return Object.fromEntries(keys.map((key) => [key, (a[key] ?? 0) + (b[key] ?? 0)]));
}

export function total(tallies: Readonly<Record<string, Tally>>): Tally {
  return Object.values(tallies).reduce(added, NO_TALLY);
}

export function published({ classes, carriedOver }: Tally): number {
  return Object.values(classes).reduce((sum, count) => sum + count, 0) - carriedOver;
}

/** Whether anything happened to an agent's tasks. */
export function isIdle(tally: Tally): boolean {
  return JSON.stringify(added(tally, NO_TALLY)) === JSON.stringify(NO_TALLY);
}

export function caught({ duplicates, skipped, classes }: Tally): number {
  const { window, subject, document, key } = duplicates;
  return window + subject + document + key + skipped + classes.duplicate;
}
