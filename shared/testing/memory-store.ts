import type { Stored, StoredHead, StoredRecord, TaskStore, WriteResult } from "../ports/store.ts";
import { sweepAt } from "../task/sweep.ts";

/** Documents in memory, guarded as everywhere: for one process, and only while it lives. */
export function memoryStore(): TaskStore {
  const tasks = new Map<string, Stored>();
  const heads = new Map<string, StoredHead>();
  const parts = new Map<string, string>();
  const records = new Map<string, StoredRecord>();
  let writes = 0;
  /** Kept as text, so that nobody holds a reference into the store. */
  const put = <T extends { readonly revision: string }>(
    kept: Map<string, T>,
    id: string,
    seen: string | undefined,
    value: Omit<T, "revision">,
  ): WriteResult => {
    if (kept.get(id)?.revision !== seen) return { kind: "refused" };
    const revision = String(++writes);
    kept.set(id, { ...structuredClone(value), revision } as T);
    return { kind: "written", revision };
  };
  const copy = <T>(value: T | undefined): T | undefined => structuredClone(value);
  return {
    name: "memory",
    pageSize: 500,
    get: async (id) => copy(tasks.get(id)),
    create: async (task) => put(tasks, task.id, undefined, { task }),
    replace: async (task, seen) => put(tasks, task.id, seen, { task }),
    due: async (agent, state, { after, until }, limit) =>
      [...tasks.values()]
        .filter(({ task }) => task.agent === agent && task.state === state)
        .filter(({ task }) => (sweepAt(task) ?? Infinity) <= until && (sweepAt(task) ?? 0) > after)
        .toSorted((a, b) => (sweepAt(a.task) ?? 0) - (sweepAt(b.task) ?? 0))
        .slice(0, limit),
    list: async ({ agent, state }, limit) => {
      const all = [...tasks.values()].map(({ task }) => task);
      const found = all.filter(
        (one) => (agent ?? one.agent) === one.agent && (state ?? one.state) === one.state,
      );
      return { tasks: found.slice(0, limit) };
    },
    getHead: async (id) => copy(heads.get(id)),
    putHead: async (head, seen) => put(heads, head.taskId, seen, { head }),
    putPart: async (id, name, text) => void parts.set(`${id}/${name}`, text),
    getPart: async (id, name) => parts.get(`${id}/${name}`),
    getRecord: async (name) => copy(records.get(name)),
    putRecord: async (name, text, seen) => put(records, name, seen, { text }),
    close: async () => {},
  };
}
