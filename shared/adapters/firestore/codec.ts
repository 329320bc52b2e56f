import type { Head } from "../../journal/entries.ts";
import type { Task } from "../../task/document.ts";
import { sweepAt } from "../../task/due.ts";
import { laneOf } from "../../task/names.ts";
import { documentText } from "../../values/document-text.ts";

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
  return { ...queryFields(task), json: documentText(task) };
}

export function queryFields(task: Task): Omit<TaskFields, "json"> {
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
  };
}

/**
 * When the server took up the write that made the document what it is. Only the server writes it: the order of all
 * writes, which no writer's clock can disturb.
 */
export const WRITTEN_AT = "writtenAt";

export const SHARDS = [0, 1, 2, 3] as const;

export const TASKS = (namespace: string) => `${namespace}-tasks`;
export const HEADS = (namespace: string) => `${namespace}-journals`;
export const PARTS = (namespace: string) => `${namespace}-parts`;
export const RECORDS = (namespace: string) => `${namespace}-records`;
export const TEXTS = (namespace: string) => `${namespace}-texts`;
/** One for each task whose document was removed, while what it owned is not. */
export const REMOVED = (namespace: string) => `${namespace}-removed`;
export const partId = (taskId: string, name: string) => `${taskId}.${name}`;
export const headFields = (head: Head) => ({ stamp: head.stamp, json: documentText(head) });
export const partFields = (taskId: string, text: string) => ({ taskId, text });
/** With something that no other write has: the same again would keep its revision. */
export const recordFields = (text: string) => ({ text, ...markFields() });
export const textFields = recordFields;
export const markFields = () => ({ stamp: crypto.randomUUID() });

/** Seconds and nanoseconds of the update time. A revision may come from a message's header, which anyone can write. */
export function isRevision(text: string): boolean {
  return /^\d{1,12}\.\d{9}$/.test(text);
}

/** Times as texts that compare as they do: their nanoseconds have nine digits. */
export const comparable = (time: string) => time.padStart(24, "0");
