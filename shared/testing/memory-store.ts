import { PawlError } from "../errors/errors.ts";
import {
  isListed,
  type Stored,
  type StoredHead,
  type StoredRecord,
  type TaskStore,
  type WriteResult,
} from "../ports/store.ts";
import type { Task } from "../task/document.ts";
import { sweepAt } from "../task/due.ts";

export interface MemoryStoreOptions {
  /** The store's own clock. */
  readonly now?: () => number;
  /** Told of every task and journal as it is stored. Not to be changed. */
  readonly written?: (stored: Stored | StoredHead) => void;
}

/** Documents in memory, guarded as everywhere: for one process, and only while it lives. */
export function memoryStore({ now = Date.now, written }: MemoryStoreOptions = {}): TaskStore {
  const tasks = new Map<string, Stored>();
  const heads = new Map<string, StoredHead>();
  const parts = new Map<string, string>();
  const records = new Map<string, StoredRecord>();
  const texts = new Map<string, string>();
  let writes = 0;
  /** Kept as a copy, so that nobody holds a reference into the store. */
  const put = <T extends { readonly revision: string }>(
    kept: Map<string, T>,
    id: string,
    seen: string | undefined,
    value: Omit<T, "revision">,
  ): WriteResult => {
    if (kept.get(id)?.revision !== seen) return { kind: "refused" };
    const revision = String(++writes);
    const stored = { ...(copy(value) as typeof value), revision } as T;
    kept.set(id, stored);
    if (!("text" in stored)) written?.(stored as unknown as Stored | StoredHead);
    return { kind: "written", revision };
  };
  /** As JSON, like in every store: what that leaves out is not kept. */
  const copy = <T>(value: T | undefined): T | undefined =>
    value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as T);
  return {
    name: "memory",
    pageSize: 500,
    get: async (id) => copy(tasks.get(id)),
    create: async (task) => put(tasks, task.id, undefined, { task }),
    replace: async (task, seen) => put(tasks, task.id, seen, { task }),
    due: async (agent, state, { after, until }, limit) => {
      const due = [...tasks.values()]
        .filter(({ task }) => task.agent === agent && task.state === state)
        .filter(({ task }) => (sweepAt(task) ?? Infinity) <= until && (sweepAt(task) ?? 0) > after)
        .toSorted((a, b) => (sweepAt(a.task) ?? 0) - (sweepAt(b.task) ?? 0));
      return { tasks: copy(due.slice(0, limit)) as Stored[], isCut: due.length > limit };
    },
    /** A cursor is the revision of the last task of its page. */
    list: async (filter, limit, cursor = "999999999999999") => {
      if (!/^[1-9]\d{0,14}$/.test(cursor))
        throw new PawlError("input_invalid", `${JSON.stringify(cursor.slice(0, 200))} is no cursor`);
      const found = [...tasks.values()]
        .filter(({ task, revision }) => isListed(task, filter) && Number(revision) < Number(cursor))
        .toSorted((a, b) => Number(b.revision) - Number(a.revision));
      const page = found.slice(0, limit);
      const last = found.length > limit ? page.at(-1) : undefined;
      return {
        tasks: page.map(({ task }) => copy(task) as Task),
        ...(last && { cursor: last.revision }),
      };
    },
    position: async () => ({ cursor: String(writes), now: now() }),
    changes: async (after = "0", limit) => {
      const written = [...tasks.entries()]
        .filter(([, { revision }]) => Number(revision) > Number(after))
        .toSorted(([, a], [, b]) => Number(a.revision) - Number(b.revision));
      const documents = written.slice(0, limit).map(([key, one]) => ({ key, ...(copy(one) as Stored) }));
      return { documents, cursor: documents.at(-1)?.revision ?? after, isLast: written.length <= limit };
    },
    getMany: async (ids) =>
      ids.map((key) => {
        const found = copy(tasks.get(key));
        return found && { key, ...found };
      }),
    getHead: async (id) => copy(heads.get(id)),
    putHead: async (head, seen) => put(heads, head.taskId, seen, { head }),
    putPart: async (id, name, text) => void parts.set(`${id}/${name}`, text),
    getPart: async (id, name) => parts.get(`${id}/${name}`),
    removeParts: async (id, isOld) => {
      for (const part of parts.keys())
        if (part.startsWith(`${id}/`) && isOld(part.slice(id.length + 1))) parts.delete(part);
    },
    expire: async (now, limit) => {
      const expired = [...tasks.values()].filter(({ task }) => "expiresAt" in task && task.expiresAt <= now);
      for (const { task } of expired.slice(0, limit)) {
        tasks.delete(task.id);
        heads.delete(task.id);
        for (const part of parts.keys()) if (part.startsWith(`${task.id}/`)) parts.delete(part);
      }
      return Math.min(expired.length, limit);
    },
    getRecord: async (name) => copy(records.get(name)),
    putRecord: async (name, text, seen) => put(records, name, seen, { text }),
    putText: async (name, text) => void texts.set(name, text),
    getText: async (name) => texts.get(name),
    removeTexts: async (isOld) => {
      for (const name of texts.keys()) if (isOld(name)) texts.delete(name);
    },
    close: async () => {},
  };
}
