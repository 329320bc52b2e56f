import type { Span } from "./examine.ts";
import { type Finding, type Findings, findingKinds, MOST_NAMED, sorted } from "./findings.ts";
import type { SequenceClass } from "./sequences.ts";
import { added, caught, merged, percentile, published, type Tally, total } from "./tally.ts";

/** How a queue was when it was looked at. */
export interface QueueReport {
  readonly stream: string;
  readonly agent: string;
  readonly lastSeq: number;
  readonly messages: number;
  readonly pending: number;
  readonly inFlight: number;
  readonly delivered: number;
  readonly ackFloor: number;
  readonly classes: Readonly<Record<SequenceClass, number>>;
}

/** A setting as it is in force, against what it should be. */
export interface Checked {
  readonly what: string;
  readonly is: string;
  readonly should: string;
  readonly ok: boolean;
}

/** What the store was asked, and how long it took over it, in milliseconds. */
export interface Operations {
  readonly reads: number;
  readonly writes: number;
  readonly readMs: number;
  readonly writeMs: number;
}

/** Tasks that are not over, by agent and state. */
export type Live = Readonly<Record<string, Readonly<Record<string, number>>>>;

export interface Report {
  readonly v: 1;
  /** An ISO week or a month: "2026-W46", "2026-11". */
  readonly name: string;
  readonly namespace: string;
  readonly store: string;
  readonly span: Span;
  /** Reconciliations that it sums up. */
  readonly runs: number;
  readonly documents: number;
  readonly agents: Readonly<Record<string, Tally>>;
  readonly queues: readonly QueueReport[];
  readonly live: Live;
  readonly findings: Findings;
  readonly repairs: Readonly<Record<string, number>>;
  readonly settings: readonly Checked[];
  readonly operations: Operations;
  readonly trends: readonly Trend[];
  readonly writtenAt: number;
}

export interface Trend {
  readonly name: string;
  readonly figures: Readonly<Record<string, number>>;
}

/** Two reports of the same week or month, the newer one second. */
export function together(a: Report | undefined, b: Report): Report {
  if (!a) return b;
  const names = [...new Set([...Object.keys(a.agents), ...Object.keys(b.agents)])].sort();
  const agents = names.map((name) => {
    const [older, newer] = [a.agents[name], b.agents[name]];
    if (!older || !newer) return [name, older ?? newer];
    // What was open then is what the newer one carried over: it is one sequence, with one end.
    const { queued: _, in_flight: __, ...closed } = older.classes;
    const before: Tally = { ...older, classes: { ...closed, queued: 0, in_flight: 0 } };
    return [name, { ...added(before, newer), carriedOver: older.carriedOver }];
  });
  const counts = { ...b.findings.counts };
  const older = a.findings.named.filter(
    (one) => !b.findings.named.some(({ kind, subject }) => kind === one.kind && subject === one.subject),
  );
  for (const [kind, count] of Object.entries(a.findings.counts)) {
    const named = a.findings.named.filter((one) => one.kind === kind).length;
    const left = older.filter((one) => one.kind === kind).length + (count - named);
    if (left > 0) counts[kind as Finding["kind"]] = (counts[kind as Finding["kind"]] ?? 0) + left;
  }
  const repairs = { ...a.repairs };
  for (const [name, count] of Object.entries(b.repairs)) repairs[name] = (repairs[name] ?? 0) + count;
  return {
    ...b,
    span: { from: Math.min(a.span.from, b.span.from), to: Math.max(a.span.to, b.span.to) },
    runs: a.runs + b.runs,
    documents: a.documents + b.documents,
    agents: Object.fromEntries(agents),
    findings: { counts, named: capped(sorted([...b.findings.named, ...older])) },
    repairs,
    operations: merged({ ...a.operations }, { ...b.operations }) as unknown as Operations,
  };
}

function capped(named: readonly Finding[]): Finding[] {
  const seen: Partial<Record<Finding["kind"], number>> = {};
  return named.filter(({ kind }) => {
    seen[kind] = (seen[kind] ?? 0) + 1;
    return (seen[kind] as number) <= MOST_NAMED;
  });
}

export interface Verdict {
  readonly ok: boolean;
  readonly line: string;
  readonly sequences: number;
  readonly unexplained: number;
}

const isBroken = (kind: string) => findingKinds[kind as Finding["kind"]].severity === "broken";

/** The first line. */
export function verdictOf({ agents, findings }: Report): Verdict {
  const all = total(agents);
  const sequences = published(all) + all.carriedOver;
  const unexplained = all.classes.unexplained;
  const broken = Object.entries(findings.counts).filter(
    ([kind, count]) => isBroken(kind) && kind !== "unexplained" && count > 0,
  );
  const twice = all.executedTwice;
  const explained =
    unexplained === 0
      ? `All ${number(sequences)} sequences explained`
      : `${number(unexplained)} of ${number(sequences)} sequences are NOT explained`;
  const once = twice === 0 ? "nothing completed twice" : `${number(twice)} completed twice`;
  const rest = broken
    .filter(([kind]) => kind !== "completed_twice")
    .map(([kind, count]) => `${number(count)} × ${kind.replaceAll("_", " ")}`);
  const ok = unexplained === 0 && twice === 0 && broken.length === 0;
  return { ok, line: `${[explained, once, ...rest].join("; ")}.`, sequences, unexplained };
}

/** What a list of reports keeps of each, for the trends. */
export function figuresOf(report: Report): Record<string, number> {
  const all = total(report.agents);
  return {
    sequences: published(all) + all.carriedOver,
    completed: all.completed,
    caught: caught(all),
    executedTwice: all.executedTwice,
    failed: all.failed,
    usd: round(all.spent.usd),
    respentUsd: round(all.respent.usd),
    savedUsd: round(all.saved.usd),
    runP95: percentile(all.runMs, 0.95) ?? 0,
  };
}

const round = (usd: number) => Math.round(usd * 10_000) / 10_000;
export const number = (value: number) => value.toLocaleString("en-US");

/** The middle of the period; of a long one, of its last week. */
const middle = ({ from, to }: Span) => to - Math.min((to - from) / 2, 3.5 * 86_400_000);

/** "2026-W46": the week that has most of the period. */
export function weekOf(span: Span): string {
  const day = new Date(middle(span));
  day.setUTCHours(0, 0, 0, 0);
  // ISO: a week belongs to the year that has its Thursday.
  day.setUTCDate(day.getUTCDate() + 3 - ((day.getUTCDay() + 6) % 7));
  const first = Date.UTC(day.getUTCFullYear(), 0, 4);
  const monday = first - ((new Date(first).getUTCDay() + 6) % 7) * 86_400_000;
  const week = 1 + Math.round((day.getTime() - monday - 3 * 86_400_000) / (7 * 86_400_000));
  return `${day.getUTCFullYear()}-W${String(week).padStart(2, "0")}`;
}

export function monthOf(span: Span): string {
  return new Date(middle(span)).toISOString().slice(0, 7);
}
