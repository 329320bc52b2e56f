import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { State, Task } from "../../shared/task/document.ts";
import { ownFields } from "../../shared/task/shape.ts";
import { isFinal, states, transitions } from "../../shared/task/table.ts";
import { apply } from "../../shared/task/transitions.ts";
import { always, arbitrary, fresh, mark } from "../support/faults/walks.ts";

const OWN = new Set(states.flatMap(ownFields));

describe("whatever happens, in whatever order", () => {
  test("the fence never goes back, and grows by one with each claim alone", () => {
    always((before, event, after) => {
      const claims = event.type === "claim" || event.type === "takeover" ? 1 : 0;
      expect(after.fence).toBe(before.fence + claims);
    });
  });

  test("no settled sequence is ever forgotten, and leaving a message for good settles it", () => {
    always((before, event, after) => {
      for (const one of before.settled) expect(after.settled).toContainEqual(one);
      const acked = ["completed", "failed", "cancelled", "scheduled", "waiting", "in_doubt"].includes(
        after.state,
      );
      if (before.state === "running" && acked) {
        expect(
          after.settled.some((one) => one.queue === before.queue && one.seq === before.seq),
          event.type,
        ).toBe(true);
      }
    });
  });

  test("only its holder's own word releases a task; no bystander's does", () => {
    always((before, event, after) => {
      if (!before.released && after.released) {
        expect([
          "complete",
          "retry",
          "hold",
          "handOff",
          "sleep",
          "wait",
          "doubt",
          "fail",
          "cancel",
        ]).toContain(event.type);
        expect(before.state).toBe("running");
        if ("ended" in event) expect(event.ended).toBe(true);
      }
    });
  });

  test("a claim starts at once only on a released task, and every start is counted", () => {
    always((before, event, after) => {
      if (event.type === "claim" || event.type === "takeover") {
        // Whoever has not let go may still act for as long as its own lease was, however short the next one's.
        if (!(after.state === "running" && after.started))
          expect(after.lease).toBeGreaterThanOrEqual(before.lease);
        expect(after).toMatchObject({ released: false, started: event.type === "claim" && before.released });
      }
      const started =
        after.state === "running" &&
        after.started &&
        !(before.state === "running" && before.started && event.type !== "takeover");
      expect(after.executions - before.executions).toBe(started ? 1 : 0);
    });
  });

  test("final states are left by a redrive alone, and carry when they expire", () => {
    always((before, event, after) => {
      if (isFinal(before) && after.state !== before.state) expect(event.type).toBe("redrive");
      expect("expiresAt" in after).toBe(isFinal(after));
    });
  });

  test("a state has exactly its own fields", () => {
    always((_, __, after) => {
      const extra = Object.keys(after).filter((key) => OWN.has(key) && !ownFields(after.state).includes(key));
      expect(extra, after.state).toEqual([]);
    });
  });

  test("every write has a stamp of its own, also in its history; the history is bounded", () => {
    always((before, event, after) => {
      expect(after.stamp).not.toBe(before.stamp);
      expect(after.history.at(-1)).toMatchObject({
        stamp: after.stamp,
        event: event.type,
        state: after.state,
      });
      expect(after.history.length).toBeLessThanOrEqual(48);
    });
  });

  test("the document is not changed in place", () => {
    always((before, event, _) => {
      const copy = structuredClone(before);
      apply(before, event, mark());
      expect(before).toEqual(copy);
    });
  });
});

test("every arrow of the table can be walked, and nothing outside it", () => {
  // Every kind of event, tried on every kind of document that can be reached.
  const events = fc.sample(arbitrary, { numRuns: 600, seed: 7 });
  const kindOf = (task: Task) =>
    [task.state, task.released, "seq" in task && task.seq, "started" in task && task.started].join(" ");
  const reached = new Map<string, Task>([[kindOf(fresh()), fresh()]]);
  const walked = new Set<string>();
  for (const before of reached.values()) {
    for (const event of events) {
      let after: Task;
      try {
        after = apply(before, event, mark());
      } catch {
        continue;
      }
      const { from, to } = transitions[event.type] as {
        from: readonly State[];
        to: readonly State[] | "same";
      };
      expect(from).toContain(before.state);
      if (to === "same") expect(after.state).toBe(before.state);
      else expect(to).toContain(after.state);
      walked.add(`${event.type}: ${before.state} → ${after.state}`);
      if (!reached.has(kindOf(after))) reached.set(kindOf(after), after);
    }
  }
  const all = Object.entries(transitions).flatMap(([event, { from, to }]) =>
    from.flatMap((state) => (to === "same" ? [state] : to).map((next) => `${event}: ${state} → ${next}`)),
  );
  expect(all.filter((arrow) => !walked.has(arrow))).toEqual([]);
  expect([...walked].filter((arrow) => !all.includes(arrow))).toEqual([]);
});
