import { farOf, type Reached } from "../journal/entries.ts";
import {
  common,
  type Reason,
  type Running,
  type SettledAs,
  type Task,
  type TaskFailure,
} from "./document.ts";
import type { Mark, TaskEvent } from "./events.ts";
import { settle } from "./settled.ts";

/** The sequence that carried it, if it is known, is explained: another will. */
export function explained(
  task: Task,
  outcome: "lost" | "rescheduled",
  { now: at }: Mark,
): Partial<Pick<Task, "settled">> {
  if ((task.state !== "running" && task.state !== "dispatched") || task.seq === undefined) return {};
  const { queue, seq, dispatches: dispatch } = task;
  return { settled: settle(task.settled, { queue, seq, dispatch, outcome, at }) };
}

/**
 * Whether the holder's code is over, by its last word: it has ended, or it was told to stop and may still run.
 * Undefined: the holder said nothing.
 */
export function ended(
  task: Task,
  isOver: boolean | undefined,
  mark: Mark,
): Pick<Task, "released" | "stopped"> {
  const isTold = isOver === false && task.state === "running";
  return {
    released: isOver ?? false,
    ...(isTold && { stopped: { at: mark.now, by: mark.by, execution: task.executions } }),
  };
}

/** What tells slow progress from a crash loop: entries that say something new. */
export function progressOf({ journaled, again = 0 }: Pick<Reached, "journaled" | "again">): number {
  return journaled - again;
}

/** What its journal has come to, by whoever looked; a document never says less than before. */
export function furthest(task: Task, reached: Reached | undefined): Reached {
  const { journaled, spent, saved } = task;
  const own = { ...farOf(task), spent, saved };
  return reached && reached.journaled >= journaled && reached.spent.turns >= spent.turns ? reached : own;
}

/** The task after its runner had to stop. A runner that had not begun leaves the rest of its wait to the next one. */
export function handedOff(task: Running, event: Extract<TaskEvent, { type: "handOff" }>, mark: Mark): Task {
  const { now: at } = mark;
  const { queue, seq, dispatches: dispatch } = task;
  const { needs: _, ...kept } = common(task);
  const needs = event.needs !== undefined && { needs: event.needs };
  const lingers = event.lingers !== undefined && { lease: event.lingers };
  const begun = { ...kept, ...needs, ...ended(task, event.ended, mark), ...lingers, silentStarts: 0 };
  // Where the wait is measured from what the holder before wrote, the time that passed is in that already.
  const waited = task.stopped ? 0 : (event.waited ?? 0);
  const unbegun = { ...common(task), ...needs, lease: Math.max(0, task.lease - waited) };
  const base = task.started ? begun : unbegun;
  if (!event.renewed) return { ...base, state: "dispatched", queue, seq };
  const settled = settle(task.settled, { queue, seq, dispatch, outcome: "rescheduled", at });
  return { ...base, settled, state: "scheduled", dueAt: at };
}

/** The holder is done with the message that carries the task: settled, and let go if its code has really ended. */
export function closed(task: Task, outcome: SettledAs, isOver: boolean | undefined, mark: Mark) {
  const carried = (task.state === "running" || task.state === "dispatched") && task.seq !== undefined;
  const { needs: _, ...kept } = common(task);
  return {
    ...kept,
    ...ended(task, isOver, mark),
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

/** It waits, and frees its lane. Where other code of its handler may linger, the next holder waits that out. */
export function suspended(task: Task, outcome: SettledAs, lingers: number | undefined, mark: Mark) {
  const base = closed(task, outcome, lingers === undefined, mark);
  return lingers === undefined ? base : { ...base, lease: lingers };
}

/** Of 48 transitions half may be failures: together these are a few kilobytes. */
const REASON_CHARS = 200;

/** Why an attempt failed, in short: the history keeps it of each. */
export function reasonOf({ code, message, stack }: TaskFailure): Reason {
  const where = stack?.trim().split("\n")[0];
  const cut = (text: string) => (text.length > REASON_CHARS ? `${text.slice(0, REASON_CHARS)}…` : text);
  return { code, message: cut(message).toWellFormed(), ...(where && { where: cut(where) }) };
}
