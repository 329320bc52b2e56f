import { expect, test } from "vitest";
import { submitted } from "../../shared/task/create.ts";
import type { Task, TaskFailure } from "../../shared/task/document.ts";
import { WAIT_OVER, wasCutShort } from "../../shared/task/ends.ts";
import type { TaskEvent } from "../../shared/task/events.ts";
import { apply } from "../../shared/task/transitions.ts";

const queue = "Q";
const error: TaskFailure = { code: "fatal", message: "x", phase: "handler" };
const claim: TaskEvent = { type: "claim", queue, seq: 1, token: "t", runner: "r", via: "s", lease: 1 };
const takeover = { ...claim, type: "takeover" as const };
const start: TaskEvent = { type: "start", lease: 1 };
const dispatch: TaskEvent = { type: "dispatch", queue };
const wake: TaskEvent = { type: "wake", queue };
const wait: TaskEvent = { type: "wait", waitingFor: ["x"] };
const heard: TaskEvent = { type: "signal", name: "y", value: 1 };

let stamps = 0;
const after = (...events: TaskEvent[]): Task =>
  events.reduce(
    (task, event) => apply(task, event, { now: 1, stamp: `s${stamps++}`, by: "r" }),
    submitted(
      { id: "t", agent: "a", lane: 0, input: {}, inputHash: "h", at: 1, stamp: "s", by: "c" },
      queue,
    ) as Task,
  );

test.each<[string, boolean, TaskEvent[]]>([
  ["nothing was before", false, [claim]],
  ["a crash", true, [claim, takeover, start]],
  ["a crash before it had started", true, [claim, takeover, takeover, start]],
  ["a crash whose message was lost too", true, [claim, { type: "requeue", queue }, claim, start]],
  ["a hand-off", true, [claim, { type: "handOff", ended: true }, claim]],
  ["a failed attempt", true, [claim, { type: "retry", error, dueAt: 1, ended: true }, dispatch, claim]],
  ["the same on a strict lane", true, [claim, { type: "hold", error, dueAt: 1, ended: true }, claim]],
  [
    "a dead letter that is redriven",
    true,
    [
      claim,
      { type: "fail", error, countsAttempt: true, ended: true, expiresAt: 1 },
      { type: "redrive", queue, fromScratch: false },
      claim,
    ],
  ],
  ["a sleep", false, [claim, { type: "sleep", dueAt: 1 }, dispatch, claim]],
  ["a wait, and what was said meanwhile", false, [claim, wait, heard, wake, claim]],
  [
    "a doubt",
    false,
    [
      claim,
      { type: "doubt", effect: "e#1", tries: 1, ended: true },
      { type: "resolve", to: "dispatched", queue, answer: {} },
      claim,
    ],
  ],
  ["a wait that was over at once", false, [claim, { type: "handOff", ended: true, note: WAIT_OVER }, claim]],
  ["a wait, then a crash", true, [claim, wait, wake, claim, takeover, start]],
  ["a crash, then a wait", false, [claim, takeover, start, wait, wake, claim]],
  ["a wait that the history has forgotten", false, [claim, wait, ...Array(60).fill(heard), wake, claim]],
  ["a crash that the history has forgotten", true, [claim, ...Array(60).fill(heard), takeover]],
])("after %s: cut short is %s", (_, expected, events) => {
  expect(wasCutShort(after(...events))).toBe(expected);
});
