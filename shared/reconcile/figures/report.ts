import type { SequenceClass } from "../books/sequences.ts";
import type { FindingName, Findings } from "../findings/findings.ts";
import { foundTogether, kindOf, kindsBySeverity, leftOf } from "../findings/found.ts";
import type { Span } from "../look/examine.ts";
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
  /** A hash of all reports before it. */
  readonly chain?: string;
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
  const repairs = { ...a.repairs };
  for (const [name, count] of Object.entries(b.repairs)) repairs[name] = (repairs[name] ?? 0) + count;
  return {
    ...b,
    span: { from: Math.min(a.span.from, b.span.from), to: Math.max(a.span.to, b.span.to) },
    runs: a.runs + b.runs,
    documents: a.documents + b.documents,
    agents: Object.fromEntries(agents),
    findings: foundTogether(a.findings, b.findings),
    repairs,
    operations: merged({ ...a.operations }, { ...b.operations }) as unknown as Operations,
  };
}

/** "ok": nobody has to do anything. "look": somebody has to. "broken": a promise did not hold. */
export type Level = "ok" | "look" | "broken";

export interface Verdict {
  readonly level: Level;
  /** Nothing is broken. */
  readonly ok: boolean;
  /** The first line: what it states, and what there is to do. */
  readonly line: string;
  readonly statement: string;
  /** What somebody has to do something about, the worst first. */
  readonly todo: readonly Todo[];
  readonly sequences: number;
  readonly unexplained: number;
}

export interface Todo {
  readonly word: "Broken" | "To do";
  /** "settled twice, 1 task (see which of them was written by hand, or copied)" */
  readonly text: string;
}

/** The first line. Green means that nobody has to do anything. */
export function verdictOf({ agents, findings }: Report): Verdict {
  const all = total(agents);
  const sequences = published(all) + all.carriedOver;
  const unexplained = all.classes.unexplained;
  const twice = findings.counts.completed_twice ?? all.executedTwice;
  const explained =
    unexplained === 0
      ? `All ${number(sequences)} sequences explained`
      : `${number(unexplained)} of ${number(sequences)} sequences are NOT explained`;
  const once = twice === 0 ? "nothing completed twice" : `${counted(twice, "task")} completed twice`;
  const statement = `${explained}; ${once}.`;
  const todo = kindsBySeverity(findings)
    .filter((kind) => leftOf(findings, kind) > 0)
    .map((kind) => todoOf(kind, leftOf(findings, kind)));
  const said = (word: Todo["word"]) => {
    const texts = todo.filter((one) => one.word === word).map(({ text }) => text);
    return texts.length === 0 ? "" : ` ${word}: ${texts.join("; ")}.`;
  };
  const line = `${statement}${said("Broken")}${said("To do")}`;
  const ok = unexplained === 0 && twice === 0 && said("Broken") === "";
  const level = !ok ? "broken" : todo.length > 0 ? "look" : "ok";
  return { level, ok, line, statement, todo, sequences, unexplained };
}

function todoOf(kind: FindingName, left: number): Todo {
  const { severity, of, todo } = kindOf(kind);
  const [first = ""] = todo.split(/\.(?: |$)/);
  const inside = first.replace(/^[A-Z](?=[a-z])/, (letter) => letter.toLowerCase());
  return {
    word: severity === "broken" ? "Broken" : "To do",
    text: `${nameOf(kind)}, ${counted(left, of)} (${inside})`,
  };
}

/** A kind of finding, or of repair, as people write it: "in doubt". */
export const nameOf = (kind: string): string => kind.replaceAll("_", " ");

/** "1 task", "1,204 tasks": no number without what it counts. */
export const counted = (count: number, of: string): string =>
  `${number(count)} ${of}${count === 1 ? "" : "s"}`;

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
    ...timesOf(all),
  };
}

/** Of a period without a completed task there is none. */
function timesOf({ wholeMs }: Tally): Record<string, number> {
  const [p50, p95] = [percentile(wholeMs, 0.5), percentile(wholeMs, 0.95)];
  return { ...(p50 !== undefined && { wholeP50: p50 }), ...(p95 !== undefined && { wholeP95: p95 }) };
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
