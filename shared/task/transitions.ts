import {
  common,
  type DuplicateLayer,
  type HistoryEntry,
  type Millis,
  type SettledAs,
  type Task,
  type TaskFailure,
} from "./document.ts";
import { PawlError } from "./errors.ts";
import { resolutionName } from "./journal.ts";
import type { Json } from "./json.ts";
import { settle } from "./settled.ts";
import { type Transition, transitions } from "./table.ts";

/** What happened, with what is needed to write it down. */
export type TaskEvent =
  | { type: "dispatch" | "wake"; queue: string; note?: string }
  | { type: "redrive"; queue: string; fromScratch: boolean }
  | { type: "requeue"; queue: string }
  | { type: "rollback"; dueAt: Millis; note: string }
  | {
      type: "claim" | "takeover";
      queue: string;
      seq: number;
      token: string;
      runner: string;
      via: string;
      lease: number;
      /** Entries in the journal, where a takeover looked: silent starts that made progress are no crash loop. */
      journaled?: number;
    }
  | { type: "start" }
  | { type: "complete"; result: Json; expiresAt: Millis }
  | { type: "retry" | "hold"; error: TaskFailure; dueAt: Millis; ended: boolean }
  | { type: "handOff"; ended: boolean }
  | { type: "sleep"; dueAt: Millis }
  | { type: "wait"; waitingFor: readonly string[]; summary?: string; dueAt?: Millis }
  | { type: "doubt"; effect: string; tries: number; ended: boolean }
  | { type: "fail"; error: TaskFailure; countsAttempt: boolean; ended: boolean; expiresAt: Millis }
  | { type: "exhaust"; error: TaskFailure; queue: string; seq: number; expiresAt: Millis }
  | { type: "requestCancel" }
  | { type: "cancel"; ended: boolean; expiresAt: Millis }
  | { type: "signal"; name: string; value: Json }
  | { type: "resolve"; to: "dispatched"; queue: string; answer: Json }
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
      return { ...base, state: "dispatched", queue: event.queue, dispatches: base.dispatches + 1 };
    case "redrive": {
      const { lastError: _, cancelRequested: __, ...kept } = base;
      // Answers belong to the journal that consumed them.
      const anew = event.fromScratch && { epoch: base.epoch + 1, journaled: 0, signals: [] };
      const dispatches = base.dispatches + 1;
      return {
        ...kept,
        ...anew,
        attempts: 0,
        silentStarts: 0,
        state: "dispatched",
        queue: event.queue,
        dispatches,
      };
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
      const { journaled = base.journaled } = event;
      const silentStarts = journaled > base.journaled ? 0 : base.silentStarts;
      return {
        ...base,
        state: "running",
        queue: event.queue,
        seq: event.seq,
        token: event.token,
        runner: event.runner,
        via: event.via,
        started,
        released: false,
        lease: started ? event.lease : Math.max(base.lease, event.lease),
        fence: base.fence + 1,
        executions: base.executions + (started ? 1 : 0),
        silentStarts: silentStarts + (started ? 1 : 0),
        journaled,
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
    case "handOff": {
      if (task.state !== "running") return undefined;
      const { queue, seq } = task;
      const again = {
        ...base,
        state: "dispatched",
        queue,
        seq,
        silentStarts: 0,
        released: event.ended,
      } as const;
      if (event.type === "handOff") return again;
      return { ...again, dueAt: event.dueAt, attempts: base.attempts + 1, lastError: event.error };
    }
    case "sleep":
      return { ...closed(task, "rescheduled", true, mark), state: "scheduled", dueAt: event.dueAt };
    case "wait":
      return {
        ...closed(task, "waiting", true, mark),
        state: "waiting",
        waitingFor: event.waitingFor,
        ...(event.summary !== undefined && { summary: event.summary }),
        ...(event.dueAt !== undefined && { dueAt: event.dueAt }),
      };
    case "doubt":
      return {
        ...closed(task, "in_doubt", event.ended, mark),
        state: "in_doubt",
        effect: event.effect,
        tries: event.tries,
      };
    case "fail":
      return {
        ...closed(task, "failed", event.ended, mark),
        state: "failed",
        error: event.error,
        attempts: base.attempts + (event.countsAttempt ? 1 : 0),
        expiresAt: event.expiresAt,
      };
    case "exhaust":
      // Of a running task only its carrier can say that it is given up.
      if (task.state === "running" && (task.queue !== event.queue || task.seq !== event.seq))
        return undefined;
      return {
        ...closed({ ...task, queue: event.queue, seq: event.seq } as Task, "failed", false, mark),
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
        case "dispatched": {
          if (task.state !== "in_doubt") return undefined;
          const name = resolutionName(task.effect, task.tries);
          const signals = [...base.signals, { name, value: event.answer, at: mark.now }];
          const dispatches = base.dispatches + 1;
          return { ...base, state: "dispatched", queue: event.queue, dispatches, signals };
        }
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
