import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { together, verdictOf } from "../../../shared/reconcile/figures/report.ts";
import { added, NO_TALLY } from "../../../shared/reconcile/figures/tally.ts";
import {
  type Finding,
  type FindingName,
  type Findings,
  findingKinds,
} from "../../../shared/reconcile/findings/findings.ts";
import { found, mended, NO_FINDINGS } from "../../../shared/reconcile/findings/found.ts";
import { finding, many, report, tally } from "../../support/report.ts";

const CLEAN = "All 3 sequences explained; nothing completed twice.";
const kinds = Object.keys(findingKinds) as FindingName[];

describe("the first line", () => {
  test("green: nobody has to do anything", () => {
    expect(verdictOf(report({}))).toMatchObject({ level: "ok", ok: true, line: CLEAN, todo: [] });
  });

  test("says each kind that somebody has to act on, with its number and what to do, the broken ones first", () => {
    const findings = found(
      NO_FINDINGS,
      finding("in_doubt", "a"),
      finding("in_doubt", "b"),
      finding("stranded", "S"),
      finding("ack_lag", "S#1"),
    );
    expect(verdictOf(report({ findings }))).toMatchObject({
      level: "look",
      ok: true,
      line: `${CLEAN} To do: in doubt, 2 tasks (look at the receiver, then \`pawl resolve\`); stranded, 1 stream (see whether the dispatch function runs).`,
    });
    const classes = { ...NO_TALLY.classes, completed: 1, unexplained: 2 };
    const worse = found(
      findings,
      finding("settled_twice", "t"),
      finding("completed_twice", "t"),
      finding("unexplained", "S#6", { amount: 2 }),
    );
    const bad = report({ agents: { echo: tally({ classes, executedTwice: 1 }) }, findings: worse });
    expect(verdictOf(bad)).toMatchObject({ level: "broken", ok: false });
    expect(verdictOf(bad).line).toMatch(
      /^2 of 3 sequences are NOT explained; 1 task completed twice\. Broken: completed twice, 1 task \(look at both results\); settled twice, 1 task \(.+\); unexplained, 2 sequences \(find out .+\)\. To do: in doubt, 2 tasks/,
    );
  });

  test.each(kinds)("%s makes the level that its severity says, mended or not", (kind) => {
    const { severity } = findingKinds[kind];
    const findings = found(NO_FINDINGS, ...many(kind, 2));
    const level = (some: Findings) => verdictOf(report({ findings: some })).level;
    expect(level(findings)).toBe(severity === "note" ? "ok" : severity);
    const one = mended(findings, kind, "task-0");
    expect(level(one)).toBe(level(findings));
    expect(level(mended(one, kind, "task-1"))).toBe(severity === "broken" ? "broken" : "ok");
    // Twice the same is one.
    expect(mended(one, kind, "task-0")).toEqual(one);
  });

  test("a repair of something else mends nothing", () => {
    const findings = found(NO_FINDINGS, ...many("orphan", 2));
    expect(mended(findings, "orphan", "another")).toEqual(findings);
    const more = found(NO_FINDINGS, ...many("orphan", 101));
    const one = mended(more, "orphan", "unnamed");
    expect(one.mended).toEqual({ orphan: 1 });
    expect(mended(one, "orphan", "another")).toEqual(one);
  });

  test("never green beside a completion too many", () => {
    const agents = { echo: tally({ executedTwice: 1 }) };
    expect(verdictOf(report({ agents }))).toMatchObject({ level: "broken" });
    const findings = found(NO_FINDINGS, finding("completed_twice", "t"));
    expect(verdictOf(report({ findings })).line).toMatch(/; 1 task completed twice\./);
  });
});

describe("several reconciliations of one week", () => {
  const week = (...runs: readonly (readonly Finding[])[]) =>
    runs.reduce<ReturnType<typeof report> | undefined>(
      (sum, some) => together(sum, report({ findings: found(NO_FINDINGS, ...some) })),
      undefined,
    )?.findings as Findings;

  test("what stands is that of the newest one: 250 in doubt are 250 in every run", () => {
    const standing = many("in_doubt", 250);
    for (let runs = 1; runs <= 4; runs++)
      expect(week(...Array.from({ length: runs }, () => standing)).counts).toEqual({ in_doubt: 250 });
    expect(week(standing, [])).toEqual(NO_FINDINGS);
    expect(week(many("in_doubt", 250), many("in_doubt", 3)).named).toHaveLength(3);
  });

  test("what happened adds up, each subject once, named or not", () => {
    const runs = [
      many("settled_twice", 250),
      many("settled_twice", 250, 200),
      many("settled_twice", 300, 150),
    ];
    expect(week(...runs).counts).toEqual({ settled_twice: 450 });
    expect(week(...runs).named).toHaveLength(100);
    expect(week(...runs, ...runs).counts).toEqual({ settled_twice: 450 });
    const lost = [finding("unexplained", "S#6", { amount: 3 })];
    expect(week(lost, lost, [finding("unexplained", "S#20", { amount: 4 })]).counts).toEqual({
      unexplained: 7,
    });
  });

  test("of any runs, every kind is counted by its nature", () => {
    const some = fc.subarray(kinds, { minLength: 1, maxLength: 2 });
    const cases = some.chain((few) => {
      const one = fc.tuple(fc.constantFrom(...few), fc.nat(400));
      const run = fc.uniqueArray(one, { selector: String, maxLength: 400, size: "max" });
      return fc.array(run, { minLength: 1, maxLength: 4 });
    });
    fc.assert(
      fc.property(cases, (runs) => {
        const findings = runs.map((run) => run.map(([kind, n]) => finding(kind, `task-${n}`)));
        const { counts, named } = week(...findings);
        for (const kind of kinds) {
          const seen = findingKinds[kind].nature === "standing" ? findings.slice(-1) : findings;
          const subjects = new Set(seen.flat().flatMap((one) => (one.kind === kind ? [one.subject] : [])));
          expect(counts[kind] ?? 0).toBe(subjects.size);
          expect(named.filter((one) => one.kind === kind).length).toBe(Math.min(100, subjects.size));
        }
      }),
      // A case of hundreds takes minutes to shrink.
      { numRuns: 50, endOnFailure: true },
    );
  }, 60_000);

  test("very many are kept in little room, and found fast", () => {
    let findings = NO_FINDINGS;
    for (const one of many("clock_back", 30_000)) findings = found(findings, one);
    expect(findings.counts).toEqual({ clock_back: 30_000 });
    expect(JSON.stringify(findings).length).toBeLessThan(300_000);
  }, 60_000);

  test("figures add up; what was open then is what the newer one carried over", () => {
    const echo = tally({ classes: { ...NO_TALLY.classes, completed: 3, queued: 2 }, completed: 3 });
    const a = report({ agents: { echo }, repairs: { tasks_dispatched: 1 } });
    const b = report({
      agents: {
        echo: tally({ classes: { ...NO_TALLY.classes, completed: 5 }, completed: 5, carriedOver: 2 }),
        other: NO_TALLY,
      },
    });
    const both = together(a, b);
    expect(both.agents.echo?.classes).toMatchObject({ completed: 8, queued: 0 });
    expect(verdictOf(both).sequences).toBe(8);
    expect(both).toMatchObject({ runs: 2, repairs: { tasks_dispatched: 1 }, operations: { writes: 18 } });
    expect(Object.keys(both.agents)).toEqual(["echo", "other"]);
    expect(added(NO_TALLY, NO_TALLY)).toEqual(NO_TALLY);
  });
});
