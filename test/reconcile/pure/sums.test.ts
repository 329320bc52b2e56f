import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { CLASSES } from "../../../shared/reconcile/books/sequences.ts";
import { together } from "../../../shared/reconcile/figures/report.ts";
import { sumsOf, totalOf, UNACCOUNTED } from "../../../shared/reconcile/figures/sums.ts";
import { NO_TALLY } from "../../../shared/reconcile/figures/tally.ts";
import { markdown } from "../../../shared/reconcile/page/markdown.ts";
import { report, tally } from "../../support/report.ts";

describe("what a reader adds up", () => {
  const count = fc.nat(500);
  const codes = fc.dictionary(fc.constantFrom("fatal", "budget_exceeded", "input_invalid"), count);
  const oneRun = fc.record({
    classes: fc.array(count, { minLength: CLASSES.length, maxLength: CLASSES.length }),
    created: count,
    completed: count,
    cancelled: count,
    codes,
    live: fc.record({ waiting: count, in_doubt: count, running: count }),
  });

  test("has the same total on both sides, in one run and over several", () => {
    fc.assert(
      fc.property(fc.array(oneRun, { minLength: 1, maxLength: 4 }), (runs) => {
        let open = 0;
        let published = 0;
        const reports = runs.map(({ classes, codes: deadLetters, live, ...rest }) => {
          const by = Object.fromEntries(
            CLASSES.map((name, i) => [name, classes[i]]),
          ) as typeof NO_TALLY.classes;
          // What was open before is among the sequences of this run.
          const all = { ...by, completed: by.completed + open };
          const failed = Object.values(deadLetters).reduce((sum, one) => sum + one, 0);
          const echo = tally({ ...rest, classes: all, carriedOver: open, failed, deadLetters });
          published += Object.values(by).reduce((sum, one) => sum + one, 0);
          open = all.queued + all.in_flight;
          return report({ agents: { echo }, live: { echo: live } });
        });
        const week = reports.reduce((a, b) => together(a, b));
        for (const one of [...reports, week])
          for (const { left, right } of sumsOf(one)) {
            expect(totalOf(left)).toBe(totalOf(right));
            expect([...left, ...right].map(([, what]) => what)).not.toContain(UNACCOUNTED);
          }
        const [sequences] = sumsOf(week);
        expect(sequences?.left.find(([, what]) => what === "published")?.[0] ?? 0).toBe(published);
      }),
      { numRuns: 300 },
    );
  });

  test("and says so where it has not: a dead letter without a reason", () => {
    const odd = report({ agents: { echo: tally({ failed: 2, deadLetters: { fatal: 1 } }) } });
    expect(sumsOf(odd).find(({ of }) => of === "dead letters")?.right).toEqual([
      [1, "fatal"],
      [1, UNACCOUNTED],
    ]);
  });

  test("tells messages whose task failed from tasks that are dead letters", () => {
    const classes = { ...NO_TALLY.classes, failed: 2 };
    const redriven = report({ agents: { echo: tally({ classes, failed: 1, deadLetters: { fatal: 1 } }) } });
    expect(sumsOf(redriven).find(({ of }) => of === "failures")).toEqual({
      of: "failures",
      left: [[2, "messages whose task failed then"]],
      right: [
        [1, "tasks that are dead letters since"],
        [1, "redriven since"],
      ],
    });
  });

  test("is on the page, in one line for each", () => {
    const page = markdown(report({}));
    expect(page).toContain("| sequences | 3 published = 3 | 3 completed its task = 3 |");
    expect(page).toContain(
      "| tasks | 3 that came + 2 live before, or redriven = 5 | 3 completed + 2 live at the end = 5 |",
    );
  });
});
