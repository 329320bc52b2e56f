import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { countOf, SequenceBook, showRanges } from "../../../shared/reconcile/books/sequences.ts";
import { monthOf, weekOf } from "../../../shared/reconcile/figures/report.ts";
import { addTime, percentile } from "../../../shared/reconcile/figures/tally.ts";
import { SeenHashes } from "../../../shared/values/hashes.ts";

const utc = (text: string) => Date.parse(`${text}Z`);

describe("weeks", () => {
  test.each([
    ["2026-11-09T06:00", "2026-11-16T06:00", "2026-W46"],
    ["2026-11-16T06:00", "2026-11-16T09:00", "2026-W47"],
    // The first of January may belong to the year before, and the end of December to the next.
    ["2020-12-28T06:00", "2021-01-04T06:00", "2020-W53"],
    ["2024-12-30T06:00", "2025-01-06T06:00", "2025-W01"],
    // A first reconciliation, after a year: the last week of it.
    ["2025-11-16T06:00", "2026-11-16T06:00", "2026-W46"],
  ])("%s to %s is %s", (from, to, week) => {
    expect(weekOf({ from: utc(from), to: utc(to) })).toBe(week);
  });
  test("a month is that of the middle", () => {
    expect(monthOf({ from: utc("2026-10-26T06:00"), to: utc("2026-11-02T06:00") })).toBe("2026-10");
  });
});

describe("ids that were seen", () => {
  test("of a million, none is taken for another; all are known again, also after they were kept", () => {
    const seen = new SeenHashes("a run");
    const some: string[] = [];
    let wrong = 0;
    for (let i = 0; i < 1_000_000; i++) {
      const id = crypto.randomUUID();
      if (seen.has(id)) wrong++;
      seen.add(id);
      if (i % 1_000 === 0) some.push(id);
    }
    expect(wrong).toBe(0);
    const again = new SeenHashes("a run", seen.kept);
    expect(some.every((id) => seen.has(id) && again.has(id))).toBe(true);
    expect(again.has("another")).toBe(false);
  }, 60_000);
  test("another run has other hashes: nobody can aim at one", () => {
    const [one, two] = ["a", "b"].map((run) => new SeenHashes(run));
    for (const seen of [one, two]) seen?.add("task");
    expect(one?.kept).not.toEqual(two?.kept);
  });
});

describe("sequences", () => {
  test("of any set of settled and present ones, exactly the others are unexplained", () => {
    const seqs = fc.uniqueArray(fc.integer({ min: 1, max: 60 }));
    fc.assert(
      fc.property(seqs, seqs, fc.integer({ min: 0, max: 20 }), (settled, present, after) => {
        const book = new SequenceBook({ after, upTo: 50, open: after > 4 ? [[2, 3]] : [] });
        for (const seq of present) book.present(seq, "queued");
        for (const seq of settled) expect(book.explain(seq, "completed", `task ${seq}`)).toBe(true);
        const all = Array.from({ length: 50 }, (_, i) => i + 1).filter(
          (seq) => seq > after || (after > 4 && (seq === 2 || seq === 3)),
        );
        const wanted = all.filter((seq) => !settled.includes(seq) && !present.includes(seq));
        const ranges = book.ranges("unexplained");
        expect(ranges.flatMap(([a, b]) => Array.from({ length: b - a + 1 }, (_, i) => a + i))).toEqual(
          wanted,
        );
        expect(book.counts().unexplained).toBe(countOf(ranges));
        expect(Object.values(book.counts()).reduce((a, b) => a + b)).toBe(all.length);
      }),
    );
  });
  test("a sequence that two tasks settle is noticed, whichever comes first", () => {
    const book = new SequenceBook({ after: 0, upTo: 2, open: [] });
    expect(book.explain(1, "completed", "a")).toBe(true);
    expect(book.explain(1, "completed", "a")).toBe(true);
    expect(book.explain(1, "duplicate", "b")).toBe(false);
    expect(book.counts().completed).toBe(1);
  });
  test("ranges are shown shortly", () => {
    expect(
      showRanges([
        [3, 3],
        [7, 12],
      ]),
    ).toBe("3, 7-12");
    expect(
      showRanges(
        [
          [1, 1],
          [3, 3],
          [5, 9],
        ],
        2,
      ),
    ).toBe("1, 3, … (7 in all)");
  });
});

test("a percentile is at most a tenth too much", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 1e6 }), { minLength: 1 }),
      fc.double({ min: 0.01, max: 1, noNaN: true }),
      (times, share) => {
        const histogram: Record<string, number> = {};
        for (const ms of times) addTime(histogram, ms);
        const exact = times.toSorted((a, b) => a - b)[Math.ceil(share * times.length) - 1] as number;
        const shown = percentile(histogram, share) as number;
        expect(shown).toBeGreaterThanOrEqual(exact - 1);
        expect(shown).toBeLessThanOrEqual(exact * 1.1 + 1);
      },
    ),
  );
  expect(percentile({}, 0.5)).toBeUndefined();
});
