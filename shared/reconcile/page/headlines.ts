import { dollars } from "../../values/dollars.ts";
import { sayDuration } from "../../values/duration.ts";
import { figuresOf, number, type Report, type Trend } from "../figures/report.ts";
import { percentile, total } from "../figures/tally.ts";

/** One of the five figures on top of a report. */
export interface Headline {
  readonly label: string;
  readonly value: string;
  /** What belongs to it. */
  readonly note: string;
  /** Against the report before: "+12 % (1,240 in 2026-W45)"; nothing where there is none to compare with. */
  readonly change?: string;
}

/** What a busy person wants to know: how much was done, what failed, what was caught, what it cost, how long it took. */
export function headlines(report: Report): Headline[] {
  const all = total(report.agents);
  const figures = figuresOf(report);
  const before = report.trends.at(-2);
  const line = (figure: string, label: string, note: string, show: (value: number) => string): Headline => {
    const value = figures[figure];
    const change = changeOf(value, before, figure, show);
    return { label, value: value === undefined ? "-" : show(value), note, ...(change && { change }) };
  };
  const p95 = percentile(all.wholeMs, 0.95);
  const perTask =
    all.completed === 0 ? "nothing completed" : `${dollars(all.wholeUsd / all.completed)} a completed task`;
  return [
    line("completed", "Tasks completed", `${number(all.created)} came`, number),
    line("failed", "Dead letters", "tasks that failed for good, or until a redrive", number),
    line("caught", "Duplicates caught", `${number(all.executedTwice)} reached execution`, number),
    line("usd", "Dollars spent", perTask, dollars),
    line(
      "wholeP50",
      "Time per task, p50",
      p95 === undefined ? "nothing completed" : `p95: ${sayDuration(p95)}, submit to completion`,
      sayDuration,
    ),
  ];
}

function changeOf(
  now: number | undefined,
  before: Trend | undefined,
  figure: string,
  show: (value: number) => string,
): string | undefined {
  const then = before?.figures[figure];
  if (before === undefined || then === undefined || now === undefined) return undefined;
  const was = `${show(then)} in ${before.name}`;
  if (now === then) return `as in ${before.name}`;
  if (then === 0) return `${was}`;
  const percent = Math.round((100 * (now - then)) / then);
  const sign = percent > 0 ? "+" : percent < 0 ? "-" : now > then ? "+" : "-";
  return `${sign}${number(Math.abs(percent))} % (${was})`;
}
