import { PawlError } from "../errors/errors.ts";
import { resolutionName } from "../journal/entries.ts";
import { countsAfter, countsWithout, keptCounts } from "./counts.ts";
import {
  common,
  type Failed,
  type HistoryEntry,
  type Redriven,
  type State,
  type Task,
  type TaskFailure,
  type Untold,
} from "./document.ts";
import { closed, ended, explained, furthest, handedOff, progressOf, reasonOf, suspended } from "./endings.ts";
import type { Mark, TaskEvent } from "./events.ts";
import { settle } from "./settled.ts";
import { successionWait } from "./succession.ts";
import { type Transition, transitions } from "./table.ts";

const TOLD: ReadonlySet<State> = new Set(["waiting", "in_doubt", "failed"]);

export function newsOf({ now, stamp, tells }: Mark): { untold?: Untold } {
  return tells ? { untold: { stamp, at: now, tries: 0, dueAt: now } } : {};
}

const HISTORY_KEPT = 48;

/** A task that only waits for its children: nobody has to be notified. */
function isForChildren(task: Task): boolean {
  return task.state === "waiting" && task.waitingFor.every((name) => name.startsWith("child:"));
}

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
  const isNews = next.state !== task.state && TOLD.has(next.state) && !isForChildren(next);
  return written(isNews ? ({ ...next, ...newsOf(mark) } as Task) : next, event, mark);
}

interface Told {
  readonly type: string;
  readonly note?: string;
  readonly layer?: string;
  readonly error?: TaskFailure;
}

function written(task: Task, event: Told, mark: Mark): Task {
  const note = event.note ?? event.layer;
  const entry: HistoryEntry = {
    at: mark.now,
    event: event.type,
    state: task.state,
    fence: task.fence,
    stamp: mark.stamp,
    by: mark.by,
    ...(note !== undefined && { note: note.slice(0, 300) }),
    ...(event.error && { error: reasonOf(event.error) }),
  };
  const history = [...task.history, entry].slice(-HISTORY_KEPT);
  const counts = countsAfter(keptCounts(task), entry);
  return { ...task, stamp: mark.stamp, counts, history, updatedAt: mark.now };
}

/** What a redrive has to forget: from the entry that somebody chose, or the answers that the task failed on, if any. */
function forgetting(
  task: Task,
  { from }: Extract<TaskEvent, { type: "redrive" }>,
  redrive: Pick<Redriven, "dispatch" | "at">,
): { redriven?: Redriven } {
  if (from !== undefined) return { redriven: { ...redrive, from } };
  const again = task.state === "failed" ? task.error.on : undefined;
  return again ? { redriven: { ...redrive, again } } : {};
}

function moved(task: Task, event: TaskEvent, mark: Mark): Task | undefined {
  const base = common(task);
  switch (event.type) {
    case "dispatch":
    case "wake":
      return { ...base, state: "dispatched", queue: event.queue, dispatches: base.dispatches + 1 };
    case "redrive": {
      const { lastError: _, cancelRequested: __, redriven: ___, ...kept } = base;
      // Answers belong to the journal that consumed them.
      const anew = {
        epoch: base.epoch + 1,
        journaled: 0,
        again: 0,
        counts: countsWithout(keptCounts(task), base.journaled),
        signals: [],
      };
      const dispatches = base.dispatches + 1;
      return {
        ...kept,
        ...(event.fromScratch ? anew : forgetting(task, event, { dispatch: dispatches, at: mark.now })),
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
        ...explained(task, event.outcome ?? "lost", mark),
        state: "dispatched",
        queue: event.queue,
        dispatches: base.dispatches + 1,
        released: base.released && task.state !== "running",
      };
    case "rollback":
      return { ...base, state: "scheduled", dueAt: event.dueAt };
    case "published":
      return task.state === "dispatched" && task.seq === undefined ? { ...task, seq: event.seq } : undefined;
    case "claim":
    case "takeover": {
      // The holder before may still act unless it let go by its own write.
      const started = successionWait(task, mark) === 0;
      const reached = furthest(task, event.reached);
      // Silent starts that made progress are no crash loop.
      const silentStarts = progressOf(reached) > progressOf(base) ? 0 : base.silentStarts;
      const { stopped, unjournaled, ...kept } = base;
      const isNone = unjournaled && base.journaled === 0;
      const isKnown = base.fence === 0 || (event.type === "claim" && base.released && isNone);
      return {
        ...kept,
        ...(!started && stopped && { stopped }),
        state: "running",
        queue: event.queue,
        seq: event.seq,
        token: event.token,
        runner: event.runner,
        via: event.via,
        started,
        fresh: isKnown === true,
        released: false,
        // A holder that has not started can't act: until it does, the lease to wait out is that of the last holder that had.
        lease: started ? event.lease : base.lease,
        fence: base.fence + 1,
        executions: base.executions + (started ? 1 : 0),
        silentStarts: silentStarts + (started ? 1 : 0),
        ...reached,
      };
    }
    case "start": {
      if (task.state !== "running" || task.started) return undefined;
      const { stopped: _, ...kept } = task;
      return {
        ...kept,
        started: true,
        lease: event.lease,
        executions: task.executions + 1,
        silentStarts: task.silentStarts + 1,
      };
    }
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
    case "hold": {
      if (task.state !== "running") return undefined;
      const { queue, seq } = task;
      const again = { ...base, ...ended(task, event.ended, mark), silentStarts: 0, queue, seq };
      const { dueAt, error: lastError } = event;
      return { ...again, state: "dispatched", dueAt, attempts: base.attempts + 1, lastError };
    }
    case "handOff":
      return task.state === "running" ? handedOff(task, event, mark) : undefined;
    case "sleep":
      return {
        ...suspended(task, "rescheduled", event.lingers, mark),
        state: "scheduled",
        dueAt: event.dueAt,
      };
    case "wait":
      return {
        ...suspended(task, "waiting", event.lingers, mark),
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
        ...closed(
          { ...task, queue: event.queue, seq: event.seq } as Task,
          "failed",
          // Never published, it was nobody's. Else its holder said nothing.
          (event.seq === undefined && base.released) || undefined,
          mark,
        ),
        ...furthest(task, event.reached),
        state: "failed",
        error: event.error,
        expiresAt: event.expiresAt,
      };
    case "requestCancel":
      return { ...task, cancelRequested: task.cancelRequested ?? { at: mark.now, by: mark.by } };
    case "cancel":
      return {
        ...closed(task, "cancelled", task.state === "running" ? event.ended : base.released, mark),
        ...furthest(task, event.reached),
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
          [event.layer]: (task.publishDuplicates[event.layer] ?? 0) + 1,
        },
      };
    case "accept":
      return task;
    case "told": {
      const { untold, ...rest } = task as Failed;
      if (!untold || event.againAt === undefined) return rest;
      return { ...rest, untold: { ...untold, tries: untold.tries + 1, dueAt: event.againAt } };
    }
    default:
      return event satisfies never;
  }
}
