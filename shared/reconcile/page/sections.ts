import type { Cost } from "../../journal/cost.ts";
import { dollars } from "../../values/dollars.ts";
import { sayDuration } from "../../values/duration.ts";
import { counted, number, type Report } from "../figures/report.ts";
import { storeCost, storePrices } from "../figures/store-prices.ts";
import { type Sum, sumsOf, totalOf } from "../figures/sums.ts";
import { type Histogram, percentile, published, type Tally, total } from "../figures/tally.ts";
import { findingSections } from "./findings.ts";
import type { Section } from "./section.ts";

const money = ({ turns, inputTokens, outputTokens, usd }: Cost) =>
  turns === 0
    ? "none"
    : `${dollars(usd)} (${counted(inputTokens + outputTokens, "token")}, ${counted(turns, "turn")})`;
const date = (at: number) => new Date(at).toISOString().slice(0, 16).replace("T", " ");
const share = (part: number, whole: number) =>
  whole === 0 ? "0 %" : `${((100 * part) / whole).toFixed(3)} %`;
const time = (ms: number | undefined) => (ms === undefined ? "-" : sayDuration(ms));
const times = (histogram: Histogram) =>
  [0.5, 0.95, 0.99].map((one) => time(percentile(histogram, one))).join(" / ");

/** Shown also where there are none. */
const ALWAYS: ReadonlySet<string> = new Set(["unexplained", "completed", "in_doubt", "in_flight", "queued"]);

/** Everything that is on a report, in its order. */
export function sections(report: Report): Section[] {
  const all = total(report.agents);
  const columns: readonly (readonly [string, Tally])[] = [...Object.entries(report.agents), ["all", all]];
  const byAgent = (
    title: string,
    of: string,
    rows: readonly (readonly [string, (tally: Tally) => string])[],
  ): Section => ({
    title,
    head: [of, ...columns.map(([name]) => name)],
    rows: rows.map(([label, cell]) => [label, ...columns.map(([, tally]) => cell(tally))]),
  });
  const count = (pick: (tally: Tally) => number) => (tally: Tally) => number(pick(tally));
  return [
    ...findingSections(report),
    {
      title: "Period",
      lines: [
        `${date(report.span.from)} to ${date(report.span.to)} UTC, ${counted(report.runs, "reconciliation")}, ${counted(report.documents, "document")} looked at.`,
        `Namespace ${report.namespace}, documents in ${report.store}.`,
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
        .map((one) => [one.replaceAll("_", " "), count((t) => t.classes[one])] as const),
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
      ["time queued, p50 / p95 / p99", (t) => times(t.queuedMs)],
      ["time of a run, p50 / p95 / p99", (t) => times(t.runMs)],
    ]),
    live(report, columns),
    byAgent("Money", "", [
      ["spent", (t) => money(t.spent)],
      ["re-spent because of crashes, at most", (t) => money(t.respent)],
      ["saved by the journal", (t) => money(t.saved)],
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
  ].filter(({ rows, lines }) => (rows?.length ?? 0) > 0 || (lines?.length ?? 0) > 0);
}

/** Documents that are not over, as they were when they were looked at. */
function live({ live: by }: Report, columns: readonly (readonly [string, Tally])[]): Section {
  const sum = (state: string) => Object.values(by).reduce((all, one) => all + (one[state] ?? 0), 0);
  return {
    title: "Live at the end of the period",
    head: ["tasks", ...columns.map(([name]) => name)],
    rows: ["scheduled", "dispatched", "running", "waiting", "in_doubt"].map((state) => [
      state.replaceAll("_", " "),
      ...columns.slice(0, -1).map(([name]) => number(by[name]?.[state] ?? 0)),
      number(sum(state)),
    ]),
  };
}

function deadLetters(columns: readonly (readonly [string, Tally])[]): Section {
  const codes = [...new Set(columns.flatMap(([, tally]) => Object.keys(tally.deadLetters)))].sort();
  return {
    title: "Dead letters by reason",
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
