import { PawlError, Unreadable } from "../../errors/errors.ts";
import type { Head } from "../../journal/entries.ts";
import type { DuePage, Found, Stored, TaskFilter, TaskPage, Unread } from "../../ports/store.ts";
import type { State, Task } from "../../task/document.ts";
import { isTaskId } from "../../task/names.ts";
import { readHead, readTask } from "../../task/shape.ts";
import { queryFields, SHARDS } from "./codec.ts";

/** A time as Firestore keeps it: "seconds.nanoseconds", the form that revisions have too. */
export interface Time {
  readonly time: string;
}

/** A document as it was read, whichever way. Its fields: texts, numbers, null, times, and what nobody of ours wrote. */
export interface Read {
  readonly key: string;
  readonly revision: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

export interface Answer {
  readonly found: readonly Read[];
  /** It ends before the end: there was too much to be held at once. */
  readonly isCut: boolean;
}

/** So many bytes of documents are held at once. */
export const MOST_BYTES = 8_000_000;

export const charsOf = ({ fields: { json } }: Read) => (typeof json === "string" ? json.length : 0);

export function taskIn({ key, revision, fields: { json } }: Read): Stored {
  return { task: readTask(textIn("Task", key, revision, json), key, revision), revision };
}

export function headIn({ key, revision, fields: { json } }: Read): { head: Head; revision: string } {
  return { head: readHead(textIn("The journal of", key, revision, json), key, revision), revision };
}

function textIn(what: string, key: string, revision: string, json: unknown): string {
  if (typeof json === "string") return json;
  throw new Unreadable(`${what} ${key}`, { key, why: "it has no json field", text: "", revision });
}

export function foundIn(read: Read): Found {
  const { key, revision } = read;
  try {
    const { task } = taskIn(read);
    const differs = differences(task, read);
    return { key, revision, task, ...(differs && { differs }) };
  } catch (error) {
    if (error instanceof Unreadable) return { key, revision, unreadable: error.why };
    throw error;
  }
}

/** The fields that queries look for and that are not as the task's own writer would have left them. */
function differences(task: Task, { fields }: Read): string {
  const { shard: _, ...wanted } = queryFields(task);
  const wrong = Object.entries(wanted)
    .filter(([name, value]) => !isSame(value, fields[name]))
    .map(([name]) => name);
  // Every query asks for all shards, and there may have been fewer when it was written.
  if (!SHARDS.includes(fields.shard as 0)) wrong.push("shard");
  return wrong.join(", ");
}

function isSame(wanted: string | number | Date | null, there: unknown): boolean {
  if (!(wanted instanceof Date)) return there === wanted;
  return (there as Time | null | undefined)?.time === timeOf(wanted);
}

function timeOf(date: Date): string {
  const ms = date.getTime();
  const seconds = Math.floor(ms / 1000);
  return `${seconds}.${String(ms - seconds * 1000).padStart(3, "0")}000000`;
}

/** In milliseconds. */
function millisOf({ time }: Time): number {
  const [seconds, nanos = ""] = time.split(".");
  return Number(seconds) * 1000 + Number(nanos.slice(0, 3));
}

/** A token's agents are asked for one by one: each range of an index is read on its own anyway. */
export function filtersOf({ agents, ...filter }: TaskFilter): Omit<TaskFilter, "agents">[] {
  return agents === undefined ? [filter] : agents.map((agent) => ({ ...filter, agent }));
}

/** The newest of all answers, and the last of them as a place to go on from. */
export function pageOf(answers: readonly Answer[], limit: number): TaskPage {
  // By what the query went by, which is not what the document says where somebody changed one of both.
  const at = ({ fields }: Read) => millisOf(fields.updatedAt as Time);
  const newestFirst = (a: Read, b: Read) => at(b) - at(a) || (a.key < b.key ? 1 : -1);
  // Behind the end of one that was cut there may be others that come before the rest.
  const [end] = answers
    .filter(({ isCut }) => isCut)
    .flatMap(({ found }) => found.slice(-1))
    .sort(newestFirst);
  const all = answers
    .flatMap(({ found }) => found)
    .sort(newestFirst)
    .filter((one) => !end || one.key === end.key || newestFirst(one, end) < 0)
    .slice(0, limit);
  const last = end || all.length === limit ? all.at(-1) : undefined;
  const tasks: Task[] = [];
  const unreadable: Unread[] = [];
  for (const found of all.map(foundIn)) {
    if ("task" in found) tasks.push(found.task);
    else unreadable.push({ key: found.key, why: found.unreadable });
  }
  return {
    tasks,
    ...(last && { cursor: `${at(last)}.${last.key}` }),
    ...(unreadable.length > 0 && { unreadable }),
  };
}

/** Until so many were found that really are due, as they say themselves: what is none must not hide those behind it. */
export async function dueOf(
  ask: (after: Read | undefined) => Promise<Answer>,
  state: State,
  limit: number,
): Promise<DuePage> {
  const tasks: Stored[] = [];
  for (let last: Read | undefined; ; ) {
    const { found, isCut } = await ask(last);
    for (const one of found.map(foundIn)) {
      if ("task" in one && one.task.state === state) tasks.push({ task: one.task, revision: one.revision });
    }
    const isLeft = isCut || found.length === limit;
    const isFull = tasks.length >= limit || (isCut && tasks.length > 0);
    if (isFull || !isLeft) return { tasks: tasks.slice(0, limit), isCut: isLeft };
    last = found.at(-1);
  }
}

/** The last moment that Firestore knows. */
export const LATEST = Date.UTC(9999, 11, 31);

/** It comes back from outside, where anyone may have written it. */
export function readCursor(cursor: string): { at: number; id: string } {
  const [, at, id] = /^(\d{1,15})\.([A-Za-z0-9_-]{1,128})$/.exec(cursor) ?? [];
  // Beyond the year 9999, or an id that Firestore reserves, it would be the server's error, not the caller's.
  if (at === undefined || id === undefined || Number(at) > LATEST || !isTaskId(id))
    throw new PawlError("input_invalid", `${JSON.stringify(cursor.slice(0, 200))} is not a valid cursor`);
  return { at: Number(at), id };
}
