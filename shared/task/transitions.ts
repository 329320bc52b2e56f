import {
  common,
  type DuplicateLayer,
  type HistoryEntry,
  type Millis,
  type SettledAs,
  type State,
  type Task,
  type TaskFailure,
} from "./document.ts";
import { PawlError } from "./errors.ts";
import type { Json } from "./json.ts";
import { settle } from "./settled.ts";

const LIVE = ["scheduled", "dispatched", "running", "waiting", "in_doubt"] as const;
const FINAL = ["completed", "failed", "cancelled"] as const;
const ANY = [...LIVE, ...FINAL] as const;

interface Transition {
  readonly from: readonly State[];
  /** "same" leaves the state as it is. */
  readonly to: readonly State[] | "same";
  readonly by: string;
  readonly meaning: string;
}

/** The only place where a task's state changes. The diagram in docs/lifecycle.md is drawn from it. */
export const transitions = {
  dispatch: { from: ["scheduled"], to: ["dispatched"], by: "dispatch", meaning: "it is due" },
  rollback: {
    from: ["dispatched"],
    to: ["scheduled"],
    by: "submit, dispatch",
    meaning: "its publish definitely failed",
  },
  requeue: {
    from: ["dispatched", "running"],
    to: ["dispatched"],
    by: "dispatch",
    meaning: "its message is gone",
  },
  claim: { from: ["dispatched"], to: ["running"], by: "runner", meaning: "a runner took its message" },
  takeover: {
    from: ["running"],
    to: ["running"],
    by: "runner",
    meaning: "its holder fell silent and the message came again",
  },
  start: {
    from: ["running"],
    to: "same",
    by: "runner",
    meaning: "no earlier holder can still act: the handler starts",
  },
  complete: { from: ["running"], to: ["completed"], by: "runner", meaning: "the handler returned" },
  retry: {
    from: ["running"],
    to: ["scheduled"],
    by: "runner",
    meaning: "the handler failed, to be tried again",
  },
  hold: {
    from: ["running"],
    to: ["dispatched"],
    by: "runner",
    meaning: "the handler failed on a strict lane, which waits for it",
  },
  handOff: { from: ["running"], to: ["dispatched"], by: "runner", meaning: "its runner must stop" },
  sleep: { from: ["running"], to: ["scheduled"], by: "runner", meaning: "the handler sleeps" },
  wait: {
    from: ["running"],
    to: ["waiting"],
    by: "runner",
    meaning: "the handler waits for an approval or event",
  },
  doubt: {
    from: ["running"],
    to: ["in_doubt"],
    by: "runner",
    meaning: "an effect began and nobody knows whether it happened",
  },
  fail: { from: ["running"], to: ["failed"], by: "runner", meaning: "it can't be done: a dead letter" },
  exhaust: {
    from: ["dispatched", "running"],
    to: ["failed"],
    by: "runner, dispatch",
    meaning: "it crashed, or was delivered, too often",
  },
  requestCancel: { from: ["running"], to: "same", by: "operator", meaning: "its holder is asked to stop" },
  cancel: {
    from: ["scheduled", "dispatched", "running", "waiting", "in_doubt"],
    to: ["cancelled"],
    by: "operator, runner",
    meaning: "it was cancelled",
  },
  signal: {
    from: LIVE,
    to: "same",
    by: "operator",
    meaning: "an answer or event is stored, however early it came",
  },
  wake: {
    from: ["waiting"],
    to: ["dispatched"],
    by: "operator, dispatch",
    meaning: "what it waited for came, or its deadline",
  },
  resolve: {
    from: ["in_doubt"],
    to: ["dispatched", "completed", "failed"],
    by: "operator",
    meaning: "a person said whether the effect happened",
  },
  redrive: {
    from: ["failed"],
    to: ["dispatched"],
    by: "operator",
    meaning: "the dead letter is tried again",
  },
  surplus: {
    from: ANY,
    to: "same",
    by: "runner",
    meaning: "another message for it is settled without running it",
  },
  skip: { from: ANY, to: "same", by: "runner", meaning: "a settled message came again" },
  publishDuplicate: { from: ANY, to: "same", by: "submit", meaning: "it was submitted again" },
} as const satisfies Record<string, Transition>;

/** What happened, with what is needed to write it down. */
export type TaskEvent =
  | { type: "dispatch" | "wake" | "redrive"; queue: string; note?: string }
  | { type: "requeue"; queue: string }
  | { type: "rollback"; dueAt: Millis; note: string }
  | { type: "claim" | "takeover"; queue: string; seq: number; token: string; runner: string }
  | { type: "start" }
  | { type: "complete"; result: Json; expiresAt: Millis }
  | { type: "retry" | "hold"; error: TaskFailure; dueAt: Millis; ended: boolean }
  | { type: "handOff"; ended: boolean }
  | { type: "sleep"; dueAt: Millis }
  | { type: "wait"; waitingFor: string; dueAt?: Millis }
  | { type: "doubt"; effect: string }
  | { type: "fail"; error: TaskFailure; countsAttempt: boolean; ended: boolean; expiresAt: Millis }
  | { type: "exhaust"; error: TaskFailure; expiresAt: Millis }
  | { type: "requestCancel" }
  | { type: "cancel"; ended: boolean; expiresAt: Millis }
  | { type: "signal"; name: string; value: Json }
  | { type: "resolve"; to: "dispatched"; queue: string }
  | { type: "resolve"; to: "completed"; result: Json; expiresAt: Millis }
  | { type: "resolve"; to: "failed"; error: TaskFailure; expiresAt: Millis }
  | { type: "surplus"; queue: string; seq: number; dispatch: number; outcome: SettledAs; note?: string }
  | { type: "skip"; queue: string; seq: number }
  | { type: "publishDuplicate"; layer: DuplicateLayer };

/** Who writes, when, and the value that makes the write unlike any other. */
export interface Mark {
  readonly now: Millis;
  readonly stamp: string;
  readonly by: string;
}

const HISTORY_KEPT = 48;

/** (document, event) → document. Throws `illegal_transition` where the table has no such arrow. */
export function apply(task: Task, event: TaskEvent, mark: Mark): Task {
  const rule: Transition = transitions[event.type];
  const next = rule.from.includes(task.state) ? moved(task, event, mark) : undefined;
  if (!next || !(rule.to === "same" ? next.state === task.state : rule.to.includes(next.state))) {
    throw new PawlError(
      "illegal_transition",
      `Task ${task.id} is ${task.state}: it can't ${event.type}, which leaves only ${rule.from.join(", ")}`,
    );
  }
  return written(next, event, mark);
}

export function isFinal(task: Task): boolean {
  return (FINAL as readonly State[]).includes(task.state);
}

function written(task: Task, event: { type: string; note?: string }, mark: Mark): Task {
  const entry: HistoryEntry = {
    at: mark.now,
    event: event.type,
    state: task.state,
    fence: task.fence,
    stamp: mark.stamp,
    by: mark.by,
    ...(event.note !== undefined && { note: event.note.slice(0, 300) }),
  };
  const history = [...task.history, entry].slice(-HISTORY_KEPT);
  return { ...task, stamp: mark.stamp, history, updatedAt: mark.now };
}

function moved(task: Task, event: TaskEvent, mark: Mark): Task | undefined {
  const base = common(task);
  switch (event.type) {
    case "dispatch":
    case "wake":
    case "redrive": {
      const { lastError: _, cancelRequested: __, ...fresh } = base;
      const kept = event.type === "redrive" ? { ...fresh, attempts: 0, silentStarts: 0 } : base;
      return { ...kept, state: "dispatched", queue: event.queue, dispatches: base.dispatches + 1 };
    }
    case "requeue":
      // Whoever held the lost message may still act, so the next holder has to wait.
      return {
        ...base,
        state: "dispatched",
        queue: event.queue,
        dispatches: base.dispatches + 1,
        released: base.released && task.state !== "running",
      };
    case "rollback":
      return { ...base, state: "scheduled", dueAt: event.dueAt };
    case "claim":
    case "takeover": {
      // The holder before may still act unless it let go by its own write.
      const started = event.type === "claim" && base.released;
      return {
        ...base,
        state: "running",
        queue: event.queue,
        seq: event.seq,
        token: event.token,
        runner: event.runner,
        started,
        released: false,
        fence: base.fence + 1,
        executions: base.executions + (started ? 1 : 0),
        silentStarts: base.silentStarts + (started ? 1 : 0),
      };
    }
    case "start":
      if (task.state !== "running" || task.started) return undefined;
      return {
        ...task,
        started: true,
        executions: task.executions + 1,
        silentStarts: task.silentStarts + 1,
      };
    case "complete":
      return {
        ...closed(task, "completed", true, mark),
        state: "completed",
        result: event.result,
        expiresAt: event.expiresAt,
      };
    case "retry":
      return {
        ...closed(task, "rescheduled", event.ended, mark),
        state: "scheduled",
        dueAt: event.dueAt,
        attempts: base.attempts + 1,
        lastError: event.error,
      };
    case "hold":
      if (task.state !== "running") return undefined;
      return {
        ...base,
        state: "dispatched",
        queue: task.queue,
        seq: task.seq,
        dueAt: event.dueAt,
        attempts: base.attempts + 1,
        silentStarts: 0,
        released: event.ended,
        lastError: event.error,
      };
    case "handOff":
      if (task.state !== "running") return undefined;
      return {
        ...base,
        state: "dispatched",
        queue: task.queue,
        seq: task.seq,
        silentStarts: 0,
        released: event.ended,
      };
    case "sleep":
      return { ...closed(task, "rescheduled", true, mark), state: "scheduled", dueAt: event.dueAt };
    case "wait":
      return {
        ...closed(task, "waiting", true, mark),
        state: "waiting",
        waitingFor: event.waitingFor,
        ...(event.dueAt !== undefined && { dueAt: event.dueAt }),
      };
    case "doubt":
      return { ...closed(task, "in_doubt", true, mark), state: "in_doubt", effect: event.effect };
    case "fail":
      return {
        ...closed(task, "failed", event.ended, mark),
        state: "failed",
        error: event.error,
        attempts: base.attempts + (event.countsAttempt ? 1 : 0),
        expiresAt: event.expiresAt,
      };
    case "exhaust":
      return {
        ...closed(task, "failed", false, mark),
        state: "failed",
        error: event.error,
        expiresAt: event.expiresAt,
      };
    case "requestCancel":
      return { ...task, cancelRequested: task.cancelRequested ?? { at: mark.now, by: mark.by } };
    case "cancel":
      return {
        ...closed(task, "cancelled", task.state === "running" ? event.ended : base.released, mark),
        state: "cancelled",
        expiresAt: event.expiresAt,
      };
    case "signal":
      return {
        ...task,
        signals: [...task.signals, { name: event.name, value: event.value, at: mark.now }],
      };
    case "resolve":
      switch (event.to) {
        case "dispatched":
          return { ...base, state: "dispatched", queue: event.queue, dispatches: base.dispatches + 1 };
        case "completed":
          return { ...base, state: "completed", result: event.result, expiresAt: event.expiresAt };
        case "failed":
          return { ...base, state: "failed", error: event.error, expiresAt: event.expiresAt };
      }
      return event satisfies never;
    case "surplus":
      return {
        ...task,
        settled: settle(task.settled, {
          queue: event.queue,
          seq: event.seq,
          dispatch: event.dispatch,
          outcome: event.outcome,
          at: mark.now,
        }),
      };
    case "skip":
      return { ...task, redeliveriesSkipped: task.redeliveriesSkipped + 1 };
    case "publishDuplicate":
      return {
        ...task,
        publishDuplicates: {
          ...task.publishDuplicates,
          [event.layer]: task.publishDuplicates[event.layer] + 1,
        },
      };
    default:
      return event satisfies never;
  }
}

/** The holder is done with the message that carries the task: settled, and let go if its code has really ended. */
function closed(task: Task, outcome: SettledAs, released: boolean, mark: Mark) {
  const carried = (task.state === "running" || task.state === "dispatched") && task.seq !== undefined;
  return {
    ...common(task),
    released,
    silentStarts: 0,
    ...(carried && {
      settled: settle(task.settled, {
        queue: task.queue,
        seq: task.seq as number,
        dispatch: task.dispatches,
        outcome,
        at: mark.now,
      }),
    }),
  };
}
