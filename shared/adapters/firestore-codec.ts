import type { Stored, TaskFilter, TaskPage } from "../ports/store.ts";
import type { Task } from "../task/document.ts";
import { PawlError } from "../task/errors.ts";
import type { Head } from "../task/journal.ts";
import { isTaskId, laneOf } from "../task/names.ts";
import { sweepAt } from "../task/sweep.ts";

/**
 * A task as Firestore fields: what queries and people look for as fields of their own, everything as one JSON text.
 * JSON inside JSON, because Firestore's own maps know no arrays in arrays, no deep nesting and no `__x__` keys.
 */
export interface TaskFields {
  readonly agent: string;
  readonly state: string;
  readonly owner: string | null;
  readonly stamp: string;
  readonly fence: number;
  readonly updatedAt: Date;
  readonly sweepAt: Date | null;
  /** Spreads tasks over this many ranges of every index, whose newest ends would take only 500 writes a second each. */
  readonly shard: number;
  /** When it may be removed: null while the task lives. */
  readonly expiresAt: Date | null;
  readonly json: string;
}

export function toFields(task: Task): TaskFields {
  const sweep = sweepAt(task);
  return {
    agent: task.agent,
    state: task.state,
    owner: task.meta?.owner ?? null,
    stamp: task.stamp,
    fence: task.fence,
    updatedAt: new Date(task.updatedAt),
    sweepAt: sweep === undefined ? null : new Date(sweep),
    shard: laneOf(task.id, SHARDS.length),
    expiresAt: "expiresAt" in task ? new Date(task.expiresAt) : null,
    json: JSON.stringify(task),
  };
}

export function fromFields(json: unknown, path: string): Task {
  if (typeof json !== "string") throw new Error(`${path} has no json field: it was not written by Pawl`);
  return JSON.parse(json) as Task;
}

export const SHARDS = [0, 1, 2, 3] as const;

export const TASKS = (namespace: string) => `${namespace}-tasks`;
export const HEADS = (namespace: string) => `${namespace}-journals`;
export const PARTS = (namespace: string) => `${namespace}-parts`;
export const RECORDS = (namespace: string) => `${namespace}-records`;
/** One for each task whose document was removed, while what it owned is not. */
export const REMOVED = (namespace: string) => `${namespace}-removed`;
export const partId = (taskId: string, name: string) => `${taskId}.${name}`;
export const headFields = (head: Head) => ({ stamp: head.stamp, json: JSON.stringify(head) });
export const partFields = (taskId: string, text: string) => ({ taskId, text });
/** With something that no other write has: the same again would keep its revision. */
export const recordFields = (text: string) => ({ text, ...markFields() });
export const markFields = () => ({ stamp: crypto.randomUUID() });

/** A token's agents are asked for one by one: each range of an index is read on its own anyway. */
export function filtersOf({ agents, ...filter }: TaskFilter): Omit<TaskFilter, "agents">[] {
  return agents === undefined ? [filter] : agents.map((agent) => ({ ...filter, agent }));
}

/** So many bytes of documents are held at once. */
export const MOST_BYTES = 8_000_000;

export interface Answer {
  readonly found: readonly Stored[];
  /** It ends before the end: there was too much to be held at once. */
  readonly isCut: boolean;
}

/** The newest of all answers, and the last of them as a place to go on from. */
export function pageOf(answers: readonly Answer[], limit: number): TaskPage {
  const tasksOf = ({ found }: Answer) => found.map(({ task }) => task);
  const newestFirst = (a: Task, b: Task) => b.updatedAt - a.updatedAt || (a.id < b.id ? 1 : -1);
  // Behind the end of one that was cut there may be others that come before the rest.
  const [end] = answers
    .filter(({ isCut }) => isCut)
    .flatMap((answer) => tasksOf(answer).slice(-1))
    .sort(newestFirst);
  const tasks = answers
    .flatMap(tasksOf)
    .sort(newestFirst)
    .filter((task) => !end || task.id === end.id || newestFirst(task, end) < 0)
    .slice(0, limit);
  const last = end || tasks.length === limit ? tasks.at(-1) : undefined;
  return { tasks, ...(last && { cursor: `${last.updatedAt}.${last.id}` }) };
}

const LATEST = Date.UTC(9999, 11, 31);

/** It comes back from outside, where anyone may have written it. */
export function readCursor(cursor: string): { at: number; id: string } {
  const [, at, id] = /^(\d{1,15})\.([A-Za-z0-9_-]{1,128})$/.exec(cursor) ?? [];
  // Beyond the year 9999, or an id that Firestore reserves, it would be the server's error, not the caller's.
  if (at === undefined || id === undefined || Number(at) > LATEST || !isTaskId(id))
    throw new PawlError("input_invalid", `${JSON.stringify(cursor.slice(0, 200))} is no cursor`);
  return { at: Number(at), id };
}

/** Seconds and nanoseconds of the update time. A revision may come from a message's header, which anyone can write. */
export function isRevision(text: string): boolean {
  return /^\d{1,12}\.\d{9}$/.test(text);
}

const refuse = async (): Promise<never> => {
  throw new PawlError("store_refused", "Firestore's order of writes is not asked for yet");
};
export const unordered = { position: refuse, changes: refuse, getMany: refuse };
