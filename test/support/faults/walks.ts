import fc from "fast-check";
import { expect } from "vitest";
import { submitted } from "../../../shared/task/create.ts";
import type { Task, TaskFailure } from "../../../shared/task/document.ts";
import type { TaskEvent } from "../../../shared/task/events.ts";
import { apply } from "../../../shared/task/transitions.ts";

export const error: TaskFailure = { code: "fatal", message: "x", phase: "handler" };
let stamps = 0;
export const mark = (now = 1_000) => ({ now, stamp: `s${stamps++}`, by: "r" });
export const envelope = {
  id: "t",
  agent: "a",
  lane: 0,
  input: {},
  inputHash: "h",
  at: 1,
  stamp: "s",
  by: "c",
};
export const fresh = () => submitted(envelope, "Q");

/** One event of each kind, with whatever it carries made up. */
export const arbitrary: fc.Arbitrary<TaskEvent> = fc.oneof(
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

/** Applies what the table allows and skips the rest; `see` is called for each step. */
export function walk(
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
export const always = (see: (before: Task, event: TaskEvent, after: Task) => void) =>
  fc.assert(
    fc.property(walks, (events) => walk(events, see)),
    { numRuns: 1_000 },
  );
