import { describe, expect, test } from "vitest";
import { figuresOf } from "../../shared/reconcile/figures/report.ts";
import { type Histogram, NO_TALLY, total } from "../../shared/reconcile/figures/tally.ts";
import { found, NO_FINDINGS } from "../../shared/reconcile/findings/found.ts";
import { ceiling, chart } from "../../shared/reconcile/page/chart.ts";
import { headlines } from "../../shared/reconcile/page/headlines.ts";
import { html } from "../../shared/reconcile/page/html.ts";
import { markdown } from "../../shared/reconcile/page/markdown.ts";
import { tables } from "../../shared/reconcile/page/sections.ts";
import { finding, report, tally } from "../support/report.ts";

const wholeMs: Histogram = { 80: 4 };
const busy = tally({
  completed: 4,
  created: 5,
  failed: 1,
  wholeMs,
  wholeUsd: 2,
  spent: { ...NO_TALLY.spent, usd: 3 },
});
const week = (name: string, figures: Record<string, number>) => ({ name, figures });
const now = (before: Record<string, number>) => {
  const one = report({ name: "2026-W47", agents: { echo: busy } });
  return { ...one, trends: [week("2026-W46", before), week("2026-W47", figuresOf(one))] };
};

describe("the five figures on top", () => {
  test("say how much, how it changed since the report before, and what belongs to it", () => {
    const before = { completed: 3, failed: 1, caught: 0, usd: 4, wholeP50: 1_024 };
    expect(headlines(now(before))).toEqual([
      { label: "Tasks completed", value: "4", note: "5 came", change: "+33 % (3 in 2026-W46)" },
      {
        label: "Dead letters",
        value: "1",
        note: "tasks that failed for good, or until a redrive",
        change: "as in 2026-W46",
      },
      { label: "Duplicates caught", value: "0", note: "0 reached execution", change: "as in 2026-W46" },
      {
        label: "Dollars spent",
        value: "$3.00",
        note: "$0.50 a completed task",
        change: "-25 % ($4.00 in 2026-W46)",
      },
      {
        label: "Time per task, p50",
        value: "2 s",
        note: "p95: 2 s, submit to completion",
        change: "+100 % (1 s in 2026-W46)",
      },
    ]);
  });

  test("from nothing there is no percentage, and without a report before no change", () => {
    const [completed, failed] = headlines(now({ completed: 0 }));
    expect(completed?.change).toBe("0 in 2026-W46");
    // The report before did not count it.
    expect(failed).not.toHaveProperty("change");
    for (const one of headlines(report({}))) expect(one).not.toHaveProperty("change");
  });

  test("of a period in which nothing was completed, there is no time", () => {
    const [, , , dollars, time] = headlines(report({ agents: {} }));
    expect(time).toMatchObject({ value: "-", note: "nothing completed" });
    expect(dollars).toMatchObject({ value: "$0", note: "nothing completed" });
    expect(figuresOf(report({ agents: {} }))).not.toHaveProperty("wholeP50");
  });
});

describe("a chart", () => {
  const figure = { name: "n", label: "Things", show: String, brief: (value: number) => `${value}!` };
  const trends = (...values: (number | undefined)[]) =>
    values.map((n, i) => week(`2026-W${10 + i}`, n === undefined ? {} : { n }));
  const bars = (svg: string) => [...svg.matchAll(/<rect [^>]*height="([\d.]+)"/g)].map(([, h]) => Number(h));
  const texts = (svg: string) => [...svg.matchAll(/<text [^>]*>([^<]*)</g)].map(([, one]) => one);

  test("has an axis from nothing to a round number, a value on each bar and a week below it", () => {
    const svg = chart(trends(30, 0, 15), figure);
    expect(texts(svg)).toEqual(["0!", "25!", "50!", "30!", "W10", "0!", "W11", "15!", "W12"]);
    const [first, none, half] = bars(svg);
    expect(none).toBe(0);
    expect(half).toBeCloseTo((first as number) / 2, 1);
    expect(svg).toContain('aria-label="Things. 2026-W10: 30, 2026-W11: 0, 2026-W12: 15"');
  });

  test("of one week is one bar, no wider than among twelve weeks twice over", () => {
    const [one] = [...chart(trends(3), figure).matchAll(/width="([\d.]+)"/g)].map(([, w]) => Number(w));
    const [many] = [...chart(trends(...Array(12).fill(3)), figure).matchAll(/width="([\d.]+)"/g)].map(
      ([, w]) => Number(w),
    );
    expect(one).toBeLessThan(2 * (many as number));
    expect(bars(chart(trends(...Array(12).fill(3)), figure))).toHaveLength(12);
  });

  test("a week that did not count it has no bar, and says so", () => {
    const svg = chart(trends(undefined, 2), figure);
    expect(bars(svg)).toHaveLength(1);
    expect(svg).toContain("2026-W10: not counted");
    expect(texts(svg)).toContain("W10");
  });

  test.each([
    [0, 1],
    [0.03, 0.05],
    [1, 1],
    [7, 10],
    [11, 20],
    [5_001, 10_000],
  ])("an axis for %d ends with %d", (value, end) => expect(ceiling(value)).toBeCloseTo(end, 10));
});

describe("the page", () => {
  test("has the verdict, the figures, the charts, what to do, then the tables", () => {
    const [, page = ""] = html(report({ findings: found(NO_FINDINGS, finding("in_doubt", "t-1")) })).split(
      "<body>",
    );
    const order = [
      "To do: 1, see below.",
      "Tasks completed",
      "<svg",
      "What to do",
      "in doubt, 1 task",
      "Exactly once",
    ];
    const places = order.map((one) => page.indexOf(one));
    expect(places).not.toContain(-1);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
    expect(html(report({}))).toContain("<h2>What to do</h2><p>Nothing.</p>");
  });

  test("agents that nothing happened to are named in a line, not in columns of zeros", () => {
    const classes = { ...NO_TALLY.classes, completed: 4 };
    const agents = { echo: { ...busy, classes }, idle: NO_TALLY, waits: NO_TALLY };
    const whole = report({ agents, live: { waits: { waiting: 1 } } });
    expect(tables(whole).find(({ title }) => title === "Work")?.head).toEqual(["", "echo", "waits", "all"]);
    const text = markdown(whole);
    expect(text).toContain("Nothing happened to tasks of idle.");
    // With one agent, a column of all would say everything twice.
    expect(tables(report({})).find(({ title }) => title === "Work")?.head).toEqual(["", "echo"]);
    expect(tables(report({ agents: {}, live: {} })).find(({ title }) => title === "Work")?.head).toEqual([
      "",
      "all",
    ]);
  });

  test("numbers stand to the right", () => {
    expect(html(report({}))).toContain('<th scope="row">tasks completed</th><td class="n">3</td>');
    expect(markdown(report({}))).toContain("| --- | ---: |\n| sequences published | 3 |");
  });

  test("a message that ended in a wait is not a task that waits now", () => {
    const classes = { ...NO_TALLY.classes, waiting: 26 };
    const text = markdown(report({ agents: { echo: tally({ classes }) }, live: {} }));
    expect(text).toContain("| a wait for an answer followed | 26 |");
    expect(text).toContain("| waiting | 0 |");
    expect(text).toContain("26 gone on with, less those suspended before");
  });
});

test("a report of an earlier version, which counted less, is added to", () => {
  const { wholeMs: _, wholeUsd: __, ...earlier } = busy;
  const sum = total({ a: earlier as typeof busy, b: busy });
  expect(sum).toMatchObject({ completed: 8, wholeMs, wholeUsd: 2 });
});
