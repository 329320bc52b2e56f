import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { COUNTED, countedOf } from "../../shared/task/counted.ts";
import { countsOf, NO_COUNTS } from "../../shared/task/counts.ts";
import { deadLetter, scheduled, submitted } from "../../shared/task/create.ts";
import type { State, Task, TaskFailure } from "../../shared/task/document.ts";
import type { TaskEvent } from "../../shared/task/events.ts";
import { isFinal, transitions } from "../../shared/task/table.ts";
import { apply } from "../../shared/task/transitions.ts";

const error: TaskFailure = { code: "fatal", message: "x", phase: "handler" };
let stamps = 0;
const mark = (now = 1_000) => ({ now, stamp: `s${stamps++}`, by: "r" });
const envelope = { id: "t", agent: "a", lane: 0, input: {}, inputHash: "h", at: 1, stamp: "s", by: "c" };
const fresh = () => submitted(envelope, "Q");

/** One event of each kind, with whatever it carries made up. */
const arbitrary: fc.Arbitrary<TaskEvent> = fc.oneof(
  fc.record({
    type: fc.constantFrom("dispatch" as const, "wake" as const),
    queue: fc.constantFrom("Q", "Q2"),
  }),
  fc.record({ type: fc.constant("requeue" as const), queue: fc.constant("Q") }),
  fc.record({ type: fc.constant("rollback" as const), dueAt: fc.nat(), note: fc.string() }),
  fc.record({ type: fc.constant("published" as const), seq: fc.integer({ min: 1, max: 9 }) }),
  fc.record({
    type: fc.constantFrom("claim" as const, "takeover" as const),
    queue: fc.constant("Q"),
    seq: fc.integer({ min: 1, max: 9 }),
    token: fc.uuid(),
    runner: fc.constant("r"),
    via: fc.constant("s"),
    lease: fc.integer({ min: 1, max: 99 }),
  }),
  fc.constant({ type: "start" as const, lease: 20_000 }),
  fc.record({ type: fc.constant("complete" as const), result: fc.constant(1), expiresAt: fc.nat() }),
  fc.record({
    type: fc.constantFrom("retry" as const, "hold" as const),
    error: fc.constant(error),
    dueAt: fc.nat(),
    ended: fc.boolean(),
  }),
  fc.record(
    {
      type: fc.constant("handOff" as const),
      ended: fc.boolean(),
      waited: fc.nat(),
      needs: fc.nat(),
      renewed: fc.boolean(),
      lingers: fc.nat(),
    },
    { requiredKeys: ["type", "ended"] },
  ),
  fc.record(
    { type: fc.constant("sleep" as const), dueAt: fc.nat(), lingers: fc.nat() },
    { requiredKeys: ["type", "dueAt"] },
  ),
  fc.record(
    { type: fc.constant("wait" as const), waitingFor: fc.constant(["ok"]), lingers: fc.nat() },
    { requiredKeys: ["type", "waitingFor"] },
  ),
  fc.record({
    type: fc.constant("doubt" as const),
    effect: fc.constant("post#1"),
    tries: fc.constant(1),
    ended: fc.boolean(),
  }),
  fc.record({
    type: fc.constant("fail" as const),
    error: fc.constant(error),
    countsAttempt: fc.boolean(),
    ended: fc.boolean(),
    expiresAt: fc.nat(),
  }),
  fc.record({
    type: fc.constant("exhaust" as const),
    queue: fc.constant("Q"),
    seq: fc.integer({ min: 1, max: 9 }),
    error: fc.constant(error),
    expiresAt: fc.nat(),
  }),
  fc.record({ type: fc.constant("redrive" as const), queue: fc.constant("Q"), fromScratch: fc.boolean() }),
  fc.constant({ type: "requestCancel" as const }),
  fc.record({ type: fc.constant("cancel" as const), ended: fc.boolean(), expiresAt: fc.nat() }),
  fc.record({ type: fc.constant("signal" as const), name: fc.constant("n"), value: fc.constant(1) }),
  fc.record({
    type: fc.constant("resolve" as const),
    to: fc.constant("dispatched" as const),
    queue: fc.constant("Q"),
    answer: fc.constant({ happened: false }),
  }),
  fc.record({
    type: fc.constant("resolve" as const),
    to: fc.constant("completed" as const),
    result: fc.constant(1),
    expiresAt: fc.nat(),
  }),
  fc.record({
    type: fc.constant("resolve" as const),
    to: fc.constant("failed" as const),
    error: fc.constant(error),
    expiresAt: fc.nat(),
  }),
  fc.record({
    type: fc.constant("surplus" as const),
    queue: fc.constant("Q"),
    seq: fc.integer({ min: 1, max: 9 }),
    dispatch: fc.constant(1),
    outcome: fc.constant("duplicate" as const),
  }),
  fc.record({
    type: fc.constant("skip" as const),
    queue: fc.constant("Q"),
    seq: fc.integer({ min: 1, max: 9 }),
  }),
  fc.record({ type: fc.constant("publishDuplicate" as const), layer: fc.constant("window" as const) }),
  fc.record({ type: fc.constant("accept" as const), note: fc.constant("looked at") }),
  fc.record({ type: fc.constant("told" as const), againAt: fc.integer({ min: 1, max: 9 }) }),
);

const FIELDS: Record<State, readonly string[]> = {
  scheduled: ["dueAt"],
  dispatched: ["queue", "seq", "dueAt"],
  running: ["queue", "seq", "token", "runner", "via", "started"],
  waiting: ["waitingFor", "dueAt", "untold"],
  in_doubt: ["effect", "untold"],
  completed: ["result", "expiresAt"],
  failed: ["error", "raw", "expiresAt", "untold"],
  cancelled: ["expiresAt"],
};
const OWN = new Set(Object.values(FIELDS).flat());

/** Applies what the table allows and skips the rest; `see` is called for each step. */
function walk(
  events: readonly TaskEvent[],
  see: (before: Task, event: TaskEvent, after: Task) => void,
): void {
  let task: Task = fresh();
  for (const event of events) {
    let next: Task;
    try {
      next = apply(task, event, mark(task.updatedAt + 1));
    } catch (refused) {
      expect(refused).toMatchObject({ code: "illegal_transition" });
      continue;
    }
    see(task, event, next);
    task = next;
  }
}

const walks = fc.array(arbitrary, { minLength: 5, maxLength: 60 });
const always = (see: (before: Task, event: TaskEvent, after: Task) => void) =>
  fc.assert(
    fc.property(walks, (events) => walk(events, see)),
    { numRuns: 1_000 },
  );

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
      const extra = Object.keys(after).filter((key) => OWN.has(key) && !FIELDS[after.state].includes(key));
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
