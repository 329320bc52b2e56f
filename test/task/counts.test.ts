import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { COUNTED, countedOf } from "../../shared/reconcile/figures/counted.ts";
import { countsOf, NO_COUNTS } from "../../shared/task/counts.ts";
import { deadLetter, scheduled } from "../../shared/task/create.ts";
import type { Task } from "../../shared/task/document.ts";
import { apply } from "../../shared/task/transitions.ts";
import { always, arbitrary, envelope, error, fresh, mark, walk } from "../support/faults/walks.ts";

describe("what a task counts of itself", () => {
  const long = fc.array(arbitrary, { minLength: 150, maxLength: 400 });
  const retries = new Set(["retry", "hold"]);
  const suspensions = new Set(["sleep", "wait", "doubt"]);

  test("is every event of its kind, however many its history has forgotten", () => {
    let longest = 0;
    fc.assert(
      fc.property(long, (events) => {
        const expected = { ...NO_COUNTS, writes: 1 };
        walk(events, (before, event, after) => {
          expected.writes++;
          if (retries.has(event.type)) expected.retries++;
          if (event.type === "takeover") expected.takeovers++;
          if (event.type === "handOff") expected.handOffs++;
          if (suspensions.has(event.type)) expected.suspensions++;
          if (before.state !== "failed" && after.state === "failed") expected.failed++;
          expect(countsOf(after)).toEqual(expected);
          longest = Math.max(longest, expected.writes);
        });
      }),
      // Shrinking walks this long takes minutes.
      { numRuns: 200, endOnFailure: true },
    );
    expect(longest).toBeGreaterThan(48);
  });

  test("never goes down, nor does anything else that a report counts", () => {
    const cost = { turns: 1, inputTokens: 1, outputTokens: 1, usd: 1 };
    always((before, event) => {
      const task = { ...before, journaled: 2, spent: cost, saved: cost };
      const [was, is] = [countedOf(task), countedOf(apply(task, event, mark()))];
      for (const name of COUNTED) expect(is[name], name).toBeGreaterThanOrEqual(was[name]);
    });
  });

  test("begins with its first write, and keeps only what is not 0", () => {
    expect(fresh().counts).toEqual({ writes: 1 });
    expect(scheduled(envelope, 9).counts).toEqual({ writes: 1 });
    const carrier = { queue: "Q", seq: 1, dispatch: 1 };
    expect(deadLetter(envelope, carrier, error, 99, mark()).counts).toEqual({ writes: 1, failed: 1 });
  });

  test("is what its history still shows in a document of an earlier version, and goes on from there", () => {
    always((before, event) => {
      const { counts: _, ...earlier } = before;
      if (before.history[0]?.event !== "submit") return;
      expect(countsOf(earlier as Task)).toEqual(countsOf(before));
      expect(apply(earlier as Task, event, mark()).counts).toEqual(apply(before, event, mark()).counts);
    });
  });

  test("keeps the entries of a journal that a redrive leaves behind", () => {
    const letter = deadLetter(envelope, { queue: "Q", seq: 1, dispatch: 1 }, error, 99, mark());
    const again = (task: Task, fromScratch: boolean) =>
      apply({ ...task, journaled: 3 }, { type: "redrive", queue: "Q", fromScratch }, mark());
    expect(again(letter, true)).toMatchObject({ journaled: 0, counts: { discarded: 3 } });
    expect(again(letter, false)).toMatchObject({ journaled: 3, counts: { writes: 2, failed: 1 } });
  });
});
