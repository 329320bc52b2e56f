import type { Stored, TaskStore, WriteResult } from "../ports/store.ts";
import type { Head } from "../task/journal.ts";
import {
  type Answer,
  filtersOf,
  fromFields,
  HEADS,
  headFields,
  isRevision,
  MOST_BYTES,
  markFields,
  PARTS,
  pageOf,
  partFields,
  partId,
  RECORDS,
  REMOVED,
  recordFields,
  TASKS,
  toFields,
  unordered,
} from "./firestore-codec.ts";
import { expireTasks, type Removal, removeParts, type Seen } from "./firestore-expire.ts";
import {
  type FirestoreRestOptions,
  firestoreHttp,
  fromRestTime,
  type RestDocument,
  toRestTime,
  type Write,
} from "./firestore-http.ts";
import {
  dueQuery,
  encodeValue,
  expiredQuery,
  listQuery,
  partsQuery,
  removedQuery,
  type Value,
} from "./firestore-query.ts";

/** Firestore's REST v1 by fetch: for runtimes where Google's client does not run. */
export function firestoreRest(options: FirestoreRestOptions): TaskStore {
  const { projectId, namespace } = options;
  const { root, ask, read, commit, query } = firestoreHttp(options);
  const taskPath = (id: string) => `${root}/${TASKS(namespace)}/${id}`;
  const headPath = (taskId: string) => `${root}/${HEADS(namespace)}/${taskId}`;
  const recordPath = (name: string) => `${root}/${RECORDS(namespace)}/${name}`;
  const partPath = (taskId: string, name: string) => `${root}/${PARTS(namespace)}/${partId(taskId, name)}`;

  const put = (what: string, path: string, fields: object, guard?: object): Promise<WriteResult> => {
    const update = { name: path, fields: encode(fields) };
    return commit(what, [{ update, ...(guard && { currentDocument: guard }) }], guard !== undefined);
  };

  /** By the last answer's documents: so many are half of what may be held at once. */
  let fitting = Infinity;
  /** As many documents as fit `most` bytes: with too much in the answer it is asked for again, for an eighth. */
  const page = async (
    what: string,
    body: (limit: number) => object,
    limit: number,
    most = MOST_BYTES,
  ): Promise<Answer> => {
    for (let size = Math.min(limit, fitting); ; size = Math.max(1, Math.floor(size / 8))) {
      // One is let through, however large.
      const documents = await query(what, body(size), size === 1 ? undefined : most);
      if (!documents) continue;
      const found = documents.map((document) => stored(document) as Stored);
      const chars = documents.reduce((sum, { fields }) => sum + String(fields?.json?.stringValue).length, 0);
      if (found.length > 0) fitting = Math.max(1, Math.floor((found.length * most) / (2 * chars)));
      return { found, isCut: size < limit && found.length === size };
    }
  };

  const names = async (what: string, body: object): Promise<Seen[]> =>
    ((await query(what, body)) ?? []).map(seen);
  const erase = (collection: string, some: readonly Seen[] = []): Write[] =>
    some.map(({ id, revision }) => ({
      delete: `${root}/${collection}/${id}`,
      currentDocument: { updateTime: toRestTime(revision) },
    }));
  const removal: Removal = {
    expired: (now, limit) => names("Looking for expired tasks", expiredQuery(namespace, now, limit)),
    bury: async (tasks) => {
      const marks = tasks.map(({ id }) => ({
        update: { name: `${root}/${REMOVED(namespace)}/${id}`, fields: encode(markFields()) },
      }));
      return (await commit("Removing expired tasks", [...erase(TASKS(namespace), tasks), ...marks])).kind;
    },
    removed: (limit) => names("Looking for removed tasks", removedQuery(namespace, limit)),
    heads: async (ids) => {
      const what = "Looking for journals of removed tasks";
      const body = { documents: ids.map(headPath), mask: { fieldPaths: ["stamp"] } };
      const answers = await ask(what, `${root}:batchGet`, body, (a) => a as { found?: RestDocument }[]);
      return answers.flatMap(({ found }) => (found ? [seen(found)] : []));
    },
    parts: (ids, limit, after) => {
      const from = after === undefined ? undefined : `${root}/${PARTS(namespace)}/${after}`;
      return names("Looking for parts of removed tasks", partsQuery(namespace, ids, limit, from));
    },
    remove: async ({ heads, parts, marks }) =>
      (
        await commit("Removing what expired tasks owned", [
          ...erase(PARTS(namespace), parts),
          ...erase(HEADS(namespace), heads),
          ...erase(REMOVED(namespace), marks),
        ])
      ).kind,
  };

  return {
    name: `Firestore ${projectId} (REST)`,
    pageSize: 500,
    get: async (id) => stored(await read(`Reading task ${id}`, taskPath(id))),
    create: (task) => put(`Creating task ${task.id}`, taskPath(task.id), toFields(task), { exists: false }),
    replace: async (task, seen) => {
      if (!isRevision(seen)) return { kind: "refused" };
      const guard = { updateTime: toRestTime(seen) };
      return put(`Writing task ${task.id}`, taskPath(task.id), toFields(task), guard);
    },
    due: async (agent, state, range, limit) => {
      const what = `Looking for due tasks of ${agent}`;
      const { found, isCut } = await page(
        what,
        (size) => dueQuery(namespace, agent, state, range, size),
        limit,
      );
      return { tasks: found, isCut: isCut || found.length === limit };
    },
    list: async (filter, limit, cursor) => {
      const filters = filtersOf(filter);
      const answers = filters.map((one) =>
        page(
          "Listing tasks",
          (size) => listQuery(namespace, root, one, size, cursor),
          limit,
          MOST_BYTES / filters.length,
        ),
      );
      return pageOf(await Promise.all(answers), limit);
    },
    ...unordered,
    getHead: async (taskId) => {
      const found = await read(`Reading the journal of ${taskId}`, headPath(taskId));
      if (!found) return undefined;
      const head = JSON.parse(found.fields?.json?.stringValue as string) as Head;
      return { head, revision: fromRestTime(found.updateTime) };
    },
    putHead: (head, seen) => {
      const guard = seen === undefined ? { exists: false } : { updateTime: toRestTime(seen) };
      return put(`Writing the journal of ${head.taskId}`, headPath(head.taskId), headFields(head), guard);
    },
    putPart: async (taskId, name, text) => {
      await put(`Storing a part of ${taskId}`, partPath(taskId, name), partFields(taskId, text));
    },
    getPart: async (taskId, name) => {
      const found = await read(`Reading a part of ${taskId}`, partPath(taskId, name));
      return found?.fields?.text?.stringValue as string | undefined;
    },
    removeParts: (taskId, isOld) => removeParts(removal, taskId, isOld),
    expire: (now, limit) => expireTasks(removal, now, limit),
    getRecord: async (name) => {
      const found = await read(`Reading record ${name}`, recordPath(name));
      if (!found) return undefined;
      return {
        text: found.fields?.text?.stringValue as string,
        revision: fromRestTime(found.updateTime),
      };
    },
    putRecord: (name, text, seen) => {
      const guard = seen === undefined ? { exists: false } : { updateTime: toRestTime(seen) };
      return put(`Writing record ${name}`, recordPath(name), recordFields(text), guard);
    },
    close: async () => {},
  };
}

function stored(document: RestDocument | undefined): Stored | undefined {
  if (!document) return undefined;
  const task = fromFields(document.fields?.json?.stringValue, document.name);
  return { task, revision: fromRestTime(document.updateTime) };
}

function seen({ name, updateTime }: RestDocument): Seen {
  return { id: name.slice(name.lastIndexOf("/") + 1), revision: fromRestTime(updateTime) };
}

function encode(fields: object): Record<string, Value> {
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, encodeValue(value)]));
}
