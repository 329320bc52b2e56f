import { describe, expect, test } from "vitest";
import { submitted } from "../../shared/task/create.ts";
import { decide } from "../../shared/task/decide.ts";
import type { State, Task } from "../../shared/task/document.ts";
import type { TaskEvent } from "../../shared/task/events.ts";
import { apply } from "../../shared/task/transitions.ts";

const mark = () => ({ now: 10, stamp: Math.random().toString(), by: "r" });
const error = { code: "fatal", message: "x", phase: "handler" } as const;
const claim: TaskEvent = { type: "claim", queue: "Q", seq: 5, token: "T", runner: "r", via: "s", lease: 10 };

const events: Record<State, TaskEvent[]> = {
  dispatched: [],
  running: [claim],
  scheduled: [claim, { type: "retry", error, dueAt: 99, ended: true }],
  waiting: [claim, { type: "wait", waitingFor: ["ok"] }],
  in_doubt: [claim, { type: "doubt", effect: "post#1", tries: 1, ended: true }],
  completed: [claim, { type: "complete", result: 1, expiresAt: 99 }],
  failed: [claim, { type: "fail", error, countsAttempt: true, ended: true, expiresAt: 99 }],
  cancelled: [claim, { type: "cancel", ended: true, expiresAt: 99 }],
};

function taskIn(state: State): Task {
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
