import { describe, expect, test } from "vitest";
import { NO_COST, plus } from "../../../shared/journal/cost.ts";
import type { Entry } from "../../../shared/journal/entries.ts";
import {
  COUNTED,
  type Counted,
  countedOf,
  minus,
  NOTHING_COUNTED,
} from "../../../shared/reconcile/figures/counted.ts";
import {
  added,
  type Counting,
  NO_TALLY,
  percentile,
  type Tally,
} from "../../../shared/reconcile/figures/tally.ts";
import { countTask } from "../../../shared/reconcile/look/examine.ts";
import { submitted } from "../../../shared/task/create.ts";
import type { Task, TaskFailure } from "../../../shared/task/document.ts";
import type { TaskEvent } from "../../../shared/task/events.ts";
import { apply } from "../../../shared/task/transitions.ts";

const error: TaskFailure = { code: "fatal", message: "x", phase: "handler" };
const TURN = { turns: 1, inputTokens: 100, outputTokens: 10, usd: 0.3 };
const submit = (at = 1) =>
  submitted({ id: "t", agent: "a", lane: 0, input: {}, inputHash: "h", at, stamp: "s", by: "c" }, "Q");
const claim: TaskEvent = { type: "claim", queue: "Q", seq: 5, token: "T", runner: "r", via: "s", lease: 10 };
const dispatch: TaskEvent = { type: "dispatch", queue: "Q" };
const retry: TaskEvent = { type: "retry", error, dueAt: 1, ended: true };
const sleep: TaskEvent = { type: "sleep", dueAt: 1 };
const fail: TaskEvent = { type: "fail", error, countsAttempt: true, ended: true, expiresAt: 9 };
const redrive: TaskEvent = { type: "redrive", queue: "Q", fromScratch: false };
const complete: TaskEvent = { type: "complete", result: 1, expiresAt: 9 };

/** Each event a moment after the one before. */
const taskAfter = (task: Task, ...events: TaskEvent[]) =>
  events.reduce<Task>((sum, event) => {
    const now = sum.updatedAt + 1;
    return apply(sum, event, { now, stamp: `${now}`, by: "r" });
  }, task);
/** As the record of an execution with a model turn writes it. */
const paid = (task: Task, event: TaskEvent) => taskAfter({ ...task, spent: plus(task.spent, TURN) }, event);
const times = <T>(count: number, one: readonly T[]) => Array.from({ length: count }, () => one).flat();

function tallied(task: Task, from: number, given?: Counted, entries: readonly Entry[] = []): Tally {
  const tally = structuredClone(NO_TALLY) as Counting;
  const before = given ?? (task.createdAt > from ? "new" : "history");
  countTask(tally, task, { from, to: task.updatedAt }, entries, before);
  return tally;
}

describe("what a report counts of a task", () => {
  const poller = (hours: number) =>
    taskAfter(submit(), ...times(hours, [claim, retry, dispatch, claim, sleep, dispatch]));

  test("is all of a task that was created in the period, whatever its history has kept", () => {
    const task = poller(60);
    expect(task.history).toHaveLength(48);
    expect(tallied(task, 0)).toMatchObject({ created: 1, executions: 120, retries: 60, writes: 361 });
  });

  test("is, of an older one, what came since the last report", () => {
    const before = poller(60);
    const now = taskAfter(before, ...times(40, [claim, retry, dispatch]), claim, complete);
    const week = tallied(now, before.updatedAt, countedOf(before));
    expect(week).toMatchObject({ created: 0, executions: 41, retries: 40, writes: 122, completed: 1 });
    const both = added(tallied(before, 0), week);
    const { queuedMs: _, runMs: __, ...whole } = tallied(now, 0);
    expect(both).toMatchObject(whole);
  });

  test("has how long it took from its submit on, and what it cost in its whole life, when it is completed", () => {
    const before = paid(taskAfter(submit(), claim), retry);
    const now = paid(taskAfter(before, dispatch, claim), { ...complete });
    const week = tallied(now, before.updatedAt, countedOf(before));
    expect(week).toMatchObject({ completed: 1, wholeUsd: 0.6, spent: { usd: 0.3 } });
    expect(percentile(week.wholeMs, 0.5)).toBeGreaterThanOrEqual(now.updatedAt - now.createdAt);
    // Not counted twice, and not before it is over.
    expect(tallied(before, 0).wholeMs).toEqual({});
    expect(tallied(now, now.updatedAt, countedOf(now))).toMatchObject({ wholeMs: {}, wholeUsd: 0 });
    const failed = taskAfter(submit(), claim, fail);
    expect(tallied(failed, 0)).toMatchObject({ failed: 1, wholeMs: {} });
  });

  test("is, of an older one that nobody counted, what its history has of the period", () => {
    const before = poller(2);
    const now = taskAfter(before, claim, retry, dispatch, claim, complete);
    expect(tallied({ ...now, spent: TURN }, before.updatedAt)).toMatchObject({
      created: 0,
      executions: 2,
      retries: 1,
      writes: 5,
      completed: 1,
      spent: NO_COST,
    });
  });

  test("is nothing, where nothing happened", () => {
    const task = taskAfter(submit(), claim, complete);
    expect(tallied({ ...task, updatedAt: 99 }, 50, countedOf(task))).toEqual(NO_TALLY);
  });
});

describe("dollars are counted in the period in which they were paid", () => {
  test("also of a task that is live", () => {
    const asleep = paid(taskAfter(submit(), claim), sleep);
    expect(tallied(asleep, 0).spent).toEqual(TURN);
    const done = paid(taskAfter(asleep, dispatch, claim), complete);
    expect(tallied(done, asleep.updatedAt, countedOf(asleep)).spent).toEqual(TURN);
  });

  test("and once, where a dead letter was reported and redriven", () => {
    const intent = (when: number): Entry => {
      return { kind: "intent", of: "turn", key: "a#1", at: 0, alone: true, reserved: TURN, when };
    };
    const dead = paid(taskAfter(submit(), claim), fail);
    const first = tallied(dead, 0, undefined, [intent(2)]);
    const redriven = taskAfter(dead, redrive, claim);
    const again = redriven.updatedAt;
    const done = paid(redriven, complete);
    // The first was lost before the first report; the second was asked for after it, and lost too.
    const second = tallied(done, dead.updatedAt, countedOf(dead), [intent(2), intent(again)]);
    expect(first).toMatchObject({ failed: 1, deadLetters: { fatal: 1 }, spent: TURN, respent: TURN });
    expect(second).toMatchObject({ failed: 0, completed: 1, spent: TURN, respent: TURN });
    expect(added(first, second).spent.usd).toBeCloseTo(0.6, 6);
    expect(tallied(done, dead.updatedAt, countedOf(dead), [intent(2)]).respent).toEqual(NO_COST);
  });
});

describe("the numbers of a task", () => {
  test("begin with nothing but its creation", () => {
    expect(countedOf(submit())).toEqual({ ...NOTHING_COUNTED, writes: 1, dispatches: 1 });
  });

  test("are plain numbers, each by its own field", () => {
    const counts = {
      writes: 1,
      retries: 2,
      takeovers: 3,
      failed: 4,
      handOffs: 5,
      suspensions: 6,
      discarded: 100,
    };
    const task: Task = {
      ...submit(),
      counts,
      executions: 7,
      dispatches: 8,
      publishDuplicates: { window: 9, subject: 10, document: 11, key: 12 },
      redeliveriesSkipped: 13,
      journaled: 14,
      spent: { turns: 15, inputTokens: 16, outputTokens: 17, usd: 18 },
      saved: { turns: 19, inputTokens: 20, outputTokens: 21, usd: 22 },
    };
    const numbers = countedOf(task);
    expect(Object.keys(numbers)).toEqual(COUNTED);
    const { journaled, completed, cancelled, ...rest } = numbers;
    expect({ journaled, completed, cancelled }).toEqual({ journaled: 114, completed: 0, cancelled: 0 });
    const all = Array.from({ length: 22 }, (_, i) => i + 1).filter((i) => i !== 14);
    expect(Object.values(rest).sort((a, b) => a - b)).toEqual(all);
  });

  test("know a dead letter whose history forgot how it became one", () => {
    const { counts: _, ...dead } = taskAfter(submit(), claim, fail);
    expect(countedOf({ ...dead, history: [] } as unknown as Task)).toMatchObject({ failed: 1, writes: 0 });
  });

  test("never take anything back from an earlier report", () => {
    const now = countedOf(taskAfter(submit(), claim));
    const before = countedOf(taskAfter(submit(), claim, retry, dispatch, claim, complete));
    expect(minus(now, before)).toEqual(NOTHING_COUNTED);
    expect(minus(before, now)).toMatchObject({ retries: 1, executions: 1, writes: 4, completed: 1 });
  });
});
