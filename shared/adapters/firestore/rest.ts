import type { TaskStore, WriteResult } from "../../ports/store.ts";
import type { Task } from "../../task/document.ts";
import { changeReader } from "./changes.ts";
import {
  HEADS,
  headFields,
  isRevision,
  markFields,
  PARTS,
  partFields,
  partId,
  RECORDS,
  REMOVED,
  recordFields,
  TASKS,
  TEXTS,
  textFields,
  toFields,
  WRITTEN_AT,
} from "./codec.ts";
import { expireTasks, type Removal, removeParts, removeTexts, type Seen } from "./expire.ts";
import { type FirestoreRestOptions, firestoreHttp, type RestDocument, type Write } from "./http.ts";
import {
  type Answer,
  charsOf,
  dueOf,
  filtersOf,
  headIn,
  MOST_BYTES,
  pageOf,
  type Read,
  type Time,
  taskIn,
} from "./pages.ts";
import {
  type Behind,
  changesQuery,
  countQuery,
  decodeValue,
  dueQuery,
  encodeValue,
  expiredQuery,
  fromRestTime,
  listQuery,
  namesQuery,
  partsQuery,
  removedQuery,
  textsQuery,
  toRestTime,
  type Value,
} from "./query.ts";

/** Firestore's REST v1 by fetch: for runtimes where Google's client does not run. */
export function firestoreRest(options: FirestoreRestOptions): TaskStore {
  const { projectId, namespace } = options;
  const { root, get, read, commit, query, count } = firestoreHttp(options);
  const taskPath = (id: string) => `${root}/${TASKS(namespace)}/${id}`;
  const headPath = (taskId: string) => `${root}/${HEADS(namespace)}/${taskId}`;
  const recordPath = (name: string) => `${root}/${RECORDS(namespace)}/${name}`;
  const textPath = (name: string) => `${root}/${TEXTS(namespace)}/${name}`;
  const partPath = (taskId: string, name: string) => `${root}/${PARTS(namespace)}/${partId(taskId, name)}`;

  const put = (what: string, path: string, fields: object, guard?: object): Promise<WriteResult> => {
    const update = { name: path, fields: encode(fields) };
    return commit(what, [{ update, ...(guard && { currentDocument: guard }) }], guard !== undefined);
  };
  const putTask = (what: string, task: Task, guard: object) => {
    const update = { name: taskPath(task.id), fields: encode(toFields(task)) };
    const updateTransforms = [{ fieldPath: WRITTEN_AT, setToServerValue: "REQUEST_TIME" }];
    return commit(what, [{ update, updateTransforms, currentDocument: guard }]);
  };

  const behind = (time: string, key: string): Behind => ({ time: toRestTime(time), name: taskPath(key) });

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
      // One document is let through, however large.
      const documents = await query(what, body(size), size === 1 ? undefined : most);
      if (!documents) continue;
      const found = documents.map(readOf);
      const chars = found.reduce((sum, one) => sum + charsOf(one), 1);
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
      const answers = await get(what, { documents: ids.map(headPath), mask: { fieldPaths: ["stamp"] } });
      return (answers ?? []).flatMap(({ found }) => (found ? [seen(found)] : []));
    },
    parts: (ids, limit, after) => {
      const from = after === undefined ? undefined : `${root}/${PARTS(namespace)}/${after}`;
      return names("Looking for parts of removed tasks", partsQuery(namespace, ids, limit, from));
    },
    texts: (limit, after) => {
      const from = after === undefined ? undefined : textPath(after);
      return names("Looking for texts", textsQuery(namespace, limit, from));
    },
    remove: async ({ heads, parts, marks, texts }) =>
      (
        await commit("Removing what is not needed any more", [
          ...erase(PARTS(namespace), parts),
          ...erase(HEADS(namespace), heads),
          ...erase(REMOVED(namespace), marks),
          ...erase(TEXTS(namespace), texts),
        ])
      ).kind,
  };

  return {
    name: `Firestore ${projectId} (REST)`,
    pageSize: 500,
    get: async (id) => {
      const found = await read(`Reading task ${id}`, taskPath(id));
      return found && taskIn(readOf(found));
    },
    create: (task) => putTask(`Creating task ${task.id}`, task, { exists: false }),
    replace: async (task, seen) => {
      if (!isRevision(seen)) return { kind: "refused" };
      return putTask(`Writing task ${task.id}`, task, { updateTime: toRestTime(seen) });
    },
    due: (agent, state, range, limit) => {
      const what = `Looking for due tasks of ${agent}`;
      const ask = (after: Read | undefined) => {
        const from = after && behind((after.fields.sweepAt as Time).time, after.key);
        return page(what, (size) => dueQuery(namespace, agent, state, range, size, from), limit);
      };
      return dueOf(ask, state, limit);
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
    count: async (filter, most) => {
      const counts = filtersOf(filter).map((one) =>
        count("Counting tasks", countQuery(namespace, root, one, most)),
      );
      return Math.min(
        most,
        (await Promise.all(counts)).reduce((sum, one) => sum + one, 0),
      );
    },
    ...changeReader({
      readTime: async (what) => {
        const [answer] = (await get(what, { documents: [recordPath("position")] })) ?? [];
        return fromRestTime(answer?.readTime as string);
      },
      byName: (what, limit, after) =>
        page(what, (size) => namesQuery(namespace, size, after && taskPath(after)), limit),
      byTime: (what, limit, from, after) => {
        const place = after && behind(after.at, after.key);
        return page(what, (size) => changesQuery(namespace, size, toRestTime(from), place), limit);
      },
      many: async (what, ids) => {
        if (ids.length === 0) return [];
        // One document is let through, however large.
        const answers = await get(
          what,
          { documents: ids.map(taskPath) },
          ids.length === 1 ? undefined : MOST_BYTES,
        );
        return answers?.flatMap(({ found }) => (found ? [readOf(found)] : []));
      },
    }),
    getHead: async (taskId) => {
      const found = await read(`Reading the journal of ${taskId}`, headPath(taskId));
      return found && headIn(readOf(found));
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
    putText: async (name, text) => {
      await put(`Storing text ${name}`, textPath(name), textFields(text));
    },
    getText: async (name) => {
      const found = await read(`Reading text ${name}`, textPath(name));
      return found?.fields?.text?.stringValue as string | undefined;
    },
    removeTexts: (isOld) => removeTexts(removal, isOld),
    close: async () => {},
  };
}

function readOf(document: RestDocument): Read {
  const { id: key, revision } = seen(document);
  const fields = Object.entries(document.fields ?? {}).map(([name, value]) => [name, decodeValue(value)]);
  return { key, revision, fields: Object.fromEntries(fields) };
}

function seen({ name, updateTime }: RestDocument): Seen {
  return { id: name.slice(name.lastIndexOf("/") + 1), revision: fromRestTime(updateTime) };
}

function encode(fields: object): Record<string, Value> {
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, encodeValue(value)]));
}
