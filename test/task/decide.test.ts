import { describe, expect, test } from "vitest";
import { submitted } from "../../shared/task/create.ts";
import { type Arrival, decide as decideSeen } from "../../shared/task/decide.ts";
import type { State, Task } from "../../shared/task/document.ts";
import type { TaskEvent } from "../../shared/task/events.ts";
import { pageOut } from "../../shared/task/settled.ts";
import { apply } from "../../shared/task/transitions.ts";

const mark = () => ({ now: 10, stamp: Math.random().toString(), by: "r" });
const error = { code: "fatal", message: "x", phase: "handler" } as const;
const claim: TaskEvent = { type: "claim", queue: "Q", seq: 5, token: "T", runner: "r", via: "s", lease: 10 };

const events = {
  dispatched: [],
  running: [claim],
  scheduled: [claim, { type: "retry", error, dueAt: 99, ended: true }],
  waiting: [claim, { type: "wait", waitingFor: ["ok"] }],
  in_doubt: [claim, { type: "doubt", effect: "post#1", tries: 1, ended: true }],
  completed: [claim, { type: "complete", result: 1, expiresAt: 99 }],
  failed: [claim, { type: "fail", error, countsAttempt: true, ended: true, expiresAt: 99 }],
  cancelled: [claim, { type: "cancel", ended: true, expiresAt: 99 }],
} satisfies Partial<Record<State, TaskEvent[]>>;

function taskIn(state: keyof typeof events): Task {
  const fresh: Task = submitted(
    { id: "t", agent: "a", lane: 0, input: {}, inputHash: "H", at: 1, stamp: "s", by: "c" },
    "Q",
  );
  return events[state].reduce<Task>((task, event) => apply(task, event, mark()), fresh);
}

const limits = { now: 50, crashLimit: 3 };
const arrival = (seq: number, queue = "Q", inputHash = "H") => ({
  agent: "a",
  queue,
  seq,
  dispatch: 1,
  inputHash,
});

/** The decision; the document comes back with it wherever there is one to act upon. */
function decide(task: Task | undefined, arrival: Arrival, most: typeof limits) {
  const decision = decideSeen(task && { task }, arrival, most);
  if (!("seen" in decision)) return decision;
  const { seen, ...rest } = decision;
  expect(seen.task).toBe(task);
  return rest;
}

describe("the table of the design, cell by cell", () => {
  test("absent: dispatched messages lost their document, direct ones are their own submit", () => {
    expect(decide(undefined, arrival(5), limits)).toEqual({ kind: "missing" });
    expect(decide(undefined, { ...arrival(5), dispatch: 0 }, limits)).toEqual({ kind: "create" });
  });

  test.each(["scheduled", "waiting", "in_doubt", "completed", "failed", "cancelled"] as const)(
    "%s",
    (state) => {
      expect(decide(taskIn(state), arrival(5), limits)).toEqual({ kind: "skip" });
      expect(decide(taskIn(state), arrival(6), limits)).toEqual({ kind: "surplus", outcome: "duplicate" });
      expect(decide(taskIn(state), arrival(5, "Q2"), limits)).toEqual({
        kind: "surplus",
        outcome: "duplicate",
      });
      expect(decide(taskIn(state), arrival(6, "Q", "other"), limits)).toEqual({
        kind: "surplus",
        outcome: "conflict",
      });
    },
  );

  describe("a message of a task that was over, or taken back, before it came", () => {
    const queued = taskIn("dispatched");
    const dispatched = (dispatch: number, seq = 5) => ({ ...arrival(seq), dispatch });
    const cancel: TaskEvent = { type: "cancel", ended: true, expiresAt: 99 };
    const exhaust: TaskEvent = { type: "exhaust", error, queue: "Q", expiresAt: 99 };
    const rollback: TaskEvent = { type: "rollback", dueAt: 99, note: "" };
    const requeue: TaskEvent = { type: "requeue", queue: "Q" };
    const taskAfter = (...events: TaskEvent[]) =>
      events.reduce<Task>((task, event) => apply(task, event, mark()), queued);
    const settledAs = (task: Task, seq: number, dispatch: number): Task => {
      const decision = decide(task, dispatched(dispatch, seq), limits);
      if (decision.kind !== "surplus") throw new Error(decision.kind);
      const { outcome } = decision;
      return apply(task, { type: "surplus", queue: "Q", seq, dispatch, outcome }, mark());
    };
    const outcomes = (task: Task) => task.settled.map(({ outcome }) => outcome);

    test.each([
      ["cancelled", taskAfter(cancel)],
      ["failed", taskAfter(exhaust)],
      ["rescheduled", taskAfter(rollback)],
    ] as const)("is %s as its task is, and a second one is a duplicate", (outcome, task) => {
      const once = settledAs(task, 5, 1);
      expect(outcomes(once)).toEqual([outcome]);
      expect(decide(once, dispatched(1), limits)).toEqual({ kind: "skip" });
      expect(outcomes(settledAs(once, 6, 1))).toEqual([outcome, "duplicate"]);
      expect(outcomes(settledAs(once, 6, 0))).toEqual([outcome, "duplicate"]);
    });

    test("is a duplicate if it was published by hand, or by a dispatch that the task does not know", () => {
      expect(outcomes(settledAs(taskAfter(cancel), 5, 0))).toEqual(["duplicate"]);
      expect(outcomes(settledAs(taskAfter(cancel), 5, 2))).toEqual(["duplicate"]);
    });

    test("shares its fate also after another was dispatched in its place, while that one has not come", () => {
      const task = taskAfter(requeue, cancel);
      expect(outcomes(settledAs(settledAs(task, 5, 1), 9, 2))).toEqual(["cancelled", "cancelled"]);
      expect(outcomes(settledAs(settledAs(task, 9, 2), 5, 1))).toEqual(["cancelled", "duplicate"]);
    });

    test("is a duplicate where its task was carried by another", () => {
      // Claimed from a message that was published by hand: the one of the dispatch comes second.
      expect(outcomes(settledAs(taskAfter(claim, cancel), 6, 1))).toEqual(["cancelled", "duplicate"]);
      const slept = taskAfter(claim, { type: "sleep", dueAt: 9 }, cancel);
      expect(outcomes(settledAs(slept, 6, 1))).toEqual(["rescheduled", "duplicate"]);
    });

    test("is a duplicate where the settlement of its dispatch was paged out behind later ones", () => {
      let task: Task = queued;
      for (let seq = 1; seq <= 70; seq++) {
        task = apply(task, { ...claim, seq }, mark());
        task = apply(task, { type: "sleep", dueAt: 9 }, mark());
        task = pageOut(task)?.task ?? task;
        task = apply(task, { type: "dispatch", queue: "Q" }, mark());
      }
      task = apply(task, cancel, mark());
      expect(task.settledPages).toBe(1);
      expect(task.settled.some(({ dispatch }) => dispatch === 3)).toBe(false);
      expect(settledAs(task, 999, 3).settled.at(-1)).toMatchObject({ outcome: "duplicate" });
      expect(settledAs(task, 999, 71).settled.at(-1)).toMatchObject({ outcome: "cancelled" });
    });
  });

  test("dispatched: any unsettled message may carry it, unless it is not due", () => {
    expect(decide(taskIn("dispatched"), arrival(1), limits)).toEqual({ kind: "claim" });
    expect(decide(taskIn("dispatched"), arrival(1, "Q2"), limits)).toEqual({ kind: "claim" });
    expect(decide(taskIn("dispatched"), arrival(1, "Q", "other"), limits)).toEqual({
      kind: "surplus",
      outcome: "conflict",
    });
    const held = apply(taskIn("running"), { type: "hold", error, dueAt: 80, ended: true }, mark());
    expect(decide(held, arrival(5), limits)).toEqual({ kind: "later", ms: 30 });
    expect(decide(held, arrival(5), { ...limits, now: 80 })).toEqual({ kind: "claim" });
  });

  test("running: its carrier's redelivery takes over, another message never does", () => {
    expect(decide(taskIn("running"), arrival(5), limits)).toEqual({ kind: "takeover" });
    expect(decide(taskIn("running"), arrival(6), limits)).toEqual({ kind: "surplus", outcome: "duplicate" });
    expect(decide(taskIn("running"), arrival(5, "Q2"), limits)).toEqual({
      kind: "surplus",
      outcome: "duplicate",
    });
  });

  test("a crash loop is seen by the next claim, and only after the limit", () => {
    let task = taskIn("running");
    for (let starts = 1; starts < limits.crashLimit; starts++) {
      expect(decide(task, arrival(5), limits)).toEqual({ kind: "takeover" });
      task = apply(task, { ...claim, type: "takeover" }, mark());
      task = apply(task, { type: "start", lease: 20_000 }, mark());
    }
    expect(decide(task, arrival(5), limits)).toEqual({ kind: "crashLoop", starts: 3 });
    const word = apply(task, { type: "handOff", ended: true }, mark());
    expect(word.silentStarts).toBe(0);
  });
});
