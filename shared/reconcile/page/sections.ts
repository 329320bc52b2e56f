import { dollars } from "../../values/dollars.ts";
import { sayDuration } from "../../values/duration.ts";
import { CLASS_NAMES } from "../books/sequences.ts";
import { counted, number, type Report } from "../figures/report.ts";
import { storeCost, storePrices } from "../figures/store-prices.ts";
import { type Sum, sumsOf, totalOf } from "../figures/sums.ts";
import { type Histogram, isIdle, percentile, published, type Tally, total } from "../figures/tally.ts";
import type { Section } from "./section.ts";

const date = (at: number) => new Date(at).toISOString().slice(0, 16).replace("T", " ");
const share = (part: number, whole: number) =>
  whole === 0 ? "0 %" : `${((100 * part) / whole).toFixed(3)} %`;
const time = (ms: number | undefined) => (ms === undefined ? "-" : sayDuration(ms));
const times = (histogram: Histogram) =>
  [0.5, 0.95, 0.99].map((one) => time(percentile(histogram, one))).join(" / ");

/** Shown also where there are none. */
const ALWAYS: ReadonlySet<string> = new Set(["unexplained", "completed", "in_doubt", "in_flight", "queued"]);

type Column = readonly [name: string, tally: Tally];

/** Everything that a report says in tables, in its order. */
export function tables(report: Report): Section[] {
  const all = total(report.agents);
  const { columns, idle } = columnsOf(report, all);
  const byAgent = (
    title: string,
    of: string,
    rows: readonly (readonly [string, (tally: Tally) => string])[],
  ): Section => ({
    title,
    isNumeric: true,
    head: [of, ...columns.map(([name]) => name)],
    rows: rows.map(([label, cell]) => [label, ...columns.map(([, tally]) => cell(tally))]),
  });
  const count = (pick: (tally: Tally) => number) => (tally: Tally) => number(pick(tally));
  const said: Section[] = [
    {
      title: "Period",
      lines: [
        `${date(report.span.from)} to ${date(report.span.to)} UTC, ${counted(report.runs, "reconciliation")}, ${counted(report.documents, "document")} looked at.`,
        `Namespace ${report.namespace}, documents in ${report.store}.`,
        ...(idle.length > 0 ? [`Nothing happened to tasks of ${idle.join(", ")}.`] : []),
        ...(report.chain === undefined
          ? []
          : [`After all reports before it, of which the hash is ${report.chain}.`]),
      ],
    },
    byAgent("Exactly once", "", [
      ["sequences published", count(published)],
      ["tasks completed", count((t) => t.completed)],
      ["duplicates caught by the stream's window", count((t) => t.duplicates.window)],
      ["duplicates caught by the occupied subject", count((t) => t.duplicates.subject)],
      [
        "duplicates caught by the document",
        count((t) => t.duplicates.document + t.skipped + t.classes.duplicate),
      ],
      ["duplicates caught by the API's key", count((t) => t.duplicates.key)],
      ["duplicates that reached execution", count((t) => t.executedTwice)],
      ["net duplication rate", (t) => share(t.executedTwice, t.completed)],
    ]),
    byAgent("What became of every sequence", "sequences", [
      ...(Object.keys(all.classes) as (keyof Tally["classes"])[])
        .filter((one) => all.classes[one] > 0 || ALWAYS.has(one))
        .map((one) => [CLASS_NAMES[one], count((t) => t.classes[one])] as const),
      ["of these open since an earlier report", count((t) => t.carriedOver)],
    ]),
    byAgent("Work", "", [
      ["tasks that came", count((t) => t.created)],
      ["tasks completed", count((t) => t.completed)],
      ["starts: claims about to run the handler", count((t) => t.executions)],
      ["retries", count((t) => t.retries)],
      ["takeovers", count((t) => t.takeovers)],
      ["redeliveries skipped", count((t) => t.skipped)],
      ["tasks that failed: dead letters", count((t) => t.failed)],
      ["tasks cancelled", count((t) => t.cancelled)],
      ["from submit to completion, p50 / p95 / p99", (t) => times(t.wholeMs)],
      ["queued before a start, p50 / p95 / p99", (t) => times(t.queuedMs)],
      ["of one execution, p50 / p95 / p99", (t) => times(t.runMs)],
    ]),
    live(report, columns),
    byAgent("Money", "", [
      ["spent", (t) => dollars(t.spent.usd)],
      ["model turns paid", count((t) => t.spent.turns)],
      ["tokens paid", count((t) => t.spent.inputTokens + t.spent.outputTokens)],
      [
        "per completed task, over its whole life",
        (t) => (t.completed === 0 ? "-" : dollars(t.wholeUsd / t.completed)),
      ],
      ["re-spent because of crashes, at most", (t) => dollars(t.respent.usd)],
      ["model turns re-spent, at most", count((t) => t.respent.turns)],
      ["saved by the journal", (t) => dollars(t.saved.usd)],
      ["model turns saved", count((t) => t.saved.turns)],
    ]),
    deadLetters(columns),
    sums(report),
    cost(report, all),
    {
      title: "Settings in force",
      head: ["setting", "is", "should be", ""],
      rows: report.settings.map(({ what, is, should, ok }) => [what, is, should, ok ? "ok" : "DIFFERS"]),
    },
    {
      title: "Queues",
      isNumeric: true,
      head: [
        "stream",
        "last sequence",
        "messages waiting",
        "messages in flight",
        "deliveries",
        "acked up to",
      ],
      rows: report.queues.map((one) => [
        one.stream,
        ...[one.lastSeq, one.pending, one.inFlight, one.delivered, one.ackFloor].map(number),
      ]),
    },
  ];
  return said.filter(({ rows, lines }) => (rows?.length ?? 0) > 0 || (lines?.length ?? 0) > 0);
}

const ALL = "all";

/** A column for each agent that something happened to or that has live tasks, and one for all where there are several. */
function columnsOf({ agents, live: by }: Report, all: Tally): { columns: Column[]; idle: string[] } {
  const isQuiet = ([name, tally]: Column) => isIdle(tally) && Object.keys(by[name] ?? {}).length === 0;
  const named = Object.entries(agents);
  const busy = named.filter((one) => !isQuiet(one));
  const idle = named.filter(isQuiet).map(([name]) => name);
  return { columns: busy.length === 1 ? busy : [...busy, [ALL, all]], idle };
}

/** Documents that are not over, as they were when they were looked at. */
function live({ live: by }: Report, columns: readonly Column[]): Section {
  const sum = (state: string) => Object.values(by).reduce((all, one) => all + (one[state] ?? 0), 0);
  return {
    title: "Live at the end of the period",
    isNumeric: true,
    head: ["tasks", ...columns.map(([name]) => name)],
    rows: ["scheduled", "dispatched", "running", "waiting", "in_doubt"].map((state) => [
      state.replaceAll("_", " "),
      ...columns.map(([name]) => number(name === ALL ? sum(state) : (by[name]?.[state] ?? 0))),
    ]),
  };
}

function deadLetters(columns: readonly Column[]): Section {
  const codes = [...new Set(columns.flatMap(([, tally]) => Object.keys(tally.deadLetters)))].sort();
  return {
    title: "Dead letters by reason",
    isNumeric: true,
    head: ["tasks", ...columns.map(([name]) => name)],
    rows: codes.map((code) => [code, ...columns.map(([, tally]) => number(tally.deadLetters[code] ?? 0))]),
  };
}

/** Figures of different tables, against each other. */
function sums(report: Report): Section {
  const side = (parts: Sum["left"]) =>
    `${parts.map(([count, what]) => `${number(count)} ${what}`).join(" + ") || "0"} = ${number(totalOf(parts))}`;
  return {
    title: "How it adds up",
    head: ["", "on one side", "on the other"],
    rows: sumsOf(report).map(({ of, left, right }) => [of, side(left), side(right)]),
  };
}

function cost(report: Report, all: Tally): Section {
  const { operations, store } = report;
  const { reads, writes, readMs, writeMs } = operations;
  const perTask = (value: number) => (all.completed === 0 ? "-" : (value / all.completed).toFixed(2));
  const mean = writes === 0 ? 0 : writeMs / writes;
  return {
    title: "What exactly-once cost",
    lines: [
      `Store: ${counted(reads, "read")} and ${counted(writes, "write")}, ${dollars(storeCost(operations, store))} by prices of ${storePrices.date}.`,
      `Per completed task: ${perTask(reads)} reads, ${perTask(writes)} writes, ${all.completed === 0 ? "-" : sayDuration((readMs + writeMs) / all.completed)} waiting for them (a write took ${mean.toFixed(1)} ms).`,
      "By the functions' own count, which a process that is killed takes along.",
    ],
  };
}
