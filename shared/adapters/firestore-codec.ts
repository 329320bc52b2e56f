import type { TaskPage } from "../ports/store.ts";
import type { Task } from "../task/document.ts";
import { PawlError } from "../task/errors.ts";
import type { Head } from "../task/journal.ts";
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
  /** The field that the TTL policy watches: null while the task lives. */
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
    expiresAt: "expiresAt" in task ? new Date(task.expiresAt) : null,
    json: JSON.stringify(task),
  };
}

export function fromFields(json: unknown, path: string): Task {
  if (typeof json !== "string") throw new Error(`${path} has no json field: it was not written by Pawl`);
  return JSON.parse(json) as Task;
}

export const TASKS = (namespace: string) => `${namespace}-tasks`;
export const HEADS = (namespace: string) => `${namespace}-journals`;
export const PARTS = (namespace: string) => `${namespace}-parts`;
export const partId = (taskId: string, name: string) => `${taskId}.${name}`;
export const headFields = (head: Head) => ({ stamp: head.stamp, json: JSON.stringify(head) });
export const partFields = (taskId: string, text: string) => ({ taskId, text });

/** The last task of a page, as a place to go on from. */
export function pageOf(tasks: readonly Task[], limit: number): TaskPage {
  const last = tasks.length === limit ? tasks.at(-1) : undefined;
  return { tasks, ...(last && { cursor: `${last.updatedAt}.${last.id}` }) };
}

/** It comes back from outside, where anyone may have written it. */
export function readCursor(cursor: string): { at: number; id: string } {
  const [, at, id] = /^(\d{1,15})\.([A-Za-z0-9_-]{1,128})$/.exec(cursor) ?? [];
  if (at === undefined || id === undefined)
    throw new PawlError("input_invalid", `${JSON.stringify(cursor.slice(0, 200))} is no cursor`);
  return { at: Number(at), id };
}

/** Seconds and nanoseconds of the update time. A revision may come from a message's header, which anyone can write. */
export function isRevision(text: string): boolean {
  return /^\d{1,12}\.\d{9}$/.test(text);
}
