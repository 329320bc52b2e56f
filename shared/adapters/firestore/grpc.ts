import {
  type CollectionReference,
  FieldPath,
  FieldValue,
  Firestore,
  type Query,
  type Timestamp,
  type WriteBatch,
} from "@google-cloud/firestore";
import type { TaskFilter, TaskStore, WriteResult } from "../../ports/store.ts";
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
  SHARDS,
  TASKS,
  TEXTS,
  textFields,
  toFields,
  WRITTEN_AT,
} from "./codec.ts";
import { isRefusedWrite, storeError, within } from "./errors.ts";
import { expireTasks, type Removal, removeParts, removeTexts, type Seen } from "./expire.ts";
import {
  dueOf,
  filtersOf,
  headIn,
  LATEST,
  MOST_BYTES,
  pageOf,
  type Read,
  readCursor,
  type Time,
  taskIn,
} from "./pages.ts";
import { answerOf, readOf, revisionOf, seen, statusOf, timestampOf } from "./snapshots.ts";

export interface FirestoreOptions {
  readonly projectId: string;
  /** The database's id: `(default)` where it is left out. */
  readonly database?: string;
  readonly namespace: string;
  readonly requestTimeout: number;
  /** A service account's; without it, what the environment provides. */
  readonly credentials?: { readonly client_email: string; readonly private_key: string };
  /** host:port. */
  readonly emulatorHost?: string;
}

/** Firestore through Google's client: for Node. */
export function firestoreGrpc(options: FirestoreOptions): TaskStore {
  const { projectId, namespace, requestTimeout, database } = options;
  const chosen = database === undefined ? {} : { databaseId: database };
  const db = new Firestore({ projectId, ...chosen, ...identity(options) });
  const tasks = db.collection(TASKS(namespace));
  const heads = db.collection(HEADS(namespace));
  const parts = db.collection(PARTS(namespace));
  const records = db.collection(RECORDS(namespace));
  const texts = db.collection(TEXTS(namespace));
  const marks = db.collection(REMOVED(namespace));

  let underWay = 0;
  const ask = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    underWay++;
    const answer = work().finally(() => underWay--);
    try {
      return await within(requestTimeout, what, answer);
    } catch (error) {
      throw storeError(statusOf(error), error, what);
    }
  };

  const write = (what: string, work: () => Promise<{ writeTime: Timestamp }>): Promise<WriteResult> =>
    ask(what, async () => {
      try {
        return { kind: "written", revision: revisionOf((await work()).writeTime) };
      } catch (error) {
        if (isRefusedWrite(statusOf(error))) return { kind: "refused" };
        throw error;
      }
    });

  const names = (what: string, query: Query): Promise<Seen[]> =>
    ask(what, async () => (await query.select(FieldPath.documentId()).get()).docs.map(seen));
  const commit = (what: string, fill: (batch: WriteBatch) => void): Promise<WriteResult["kind"]> =>
    ask(what, async () => {
      const batch = db.batch();
      fill(batch);
      try {
        await batch.commit();
        return "written";
      } catch (error) {
        if (isRefusedWrite(statusOf(error))) return "refused";
        throw error;
      }
    });
  const erase = (batch: WriteBatch, from: CollectionReference, some: readonly Seen[] = []) => {
    for (const { id, revision } of some)
      batch.delete(from.doc(id), { lastUpdateTime: timestampOf(revision) });
  };
  /** Tasks that a filter lets through, the last changed first. */
  const listed = ({ agent, owner, state, states }: Omit<TaskFilter, "agents">): Query => {
    // No field that is something else than a time: it would have no place among the others.
    const times = tasks.where("updatedAt", "<=", new Date(LATEST));
    let query: Query = times.where("shard", "in", SHARDS);
    if (agent !== undefined) query = query.where("agent", "==", agent);
    if (owner !== undefined) query = query.where("owner", "==", owner);
    if (state !== undefined) query = query.where("state", "==", state);
    if (states !== undefined) query = query.where("state", "in", [...states]);
    return query.orderBy("updatedAt", "desc").orderBy(FieldPath.documentId(), "desc");
  };

  const removal: Removal = {
    expired: (now, limit) => {
      const query = tasks.where("shard", "in", SHARDS).where("expiresAt", "<=", new Date(now));
      return names("Looking for expired tasks", query.orderBy("expiresAt").limit(limit));
    },
    bury: (some) =>
      commit("Removing expired tasks", (batch) => {
        erase(batch, tasks, some);
        for (const { id } of some) batch.set(marks.doc(id), markFields());
      }),
    removed: (limit) => names("Looking for removed tasks", marks.limit(limit)),
    heads: (ids) =>
      ask("Looking for journals of removed tasks", async () => {
        const docs = ids.map((id) => heads.doc(id));
        const found = await db.getAll(...docs, { fieldMask: ["stamp"] });
        return found.filter(({ exists }) => exists).map(seen);
      }),
    parts: (ids, limit, after) => {
      const query = parts.where("taskId", "in", ids).orderBy(FieldPath.documentId()).limit(limit);
      const what = "Looking for parts of removed tasks";
      return names(what, after === undefined ? query : query.startAfter(after));
    },
    texts: (limit, after) => {
      const query = texts.orderBy(FieldPath.documentId()).limit(limit);
      return names("Looking for texts", after === undefined ? query : query.startAfter(after));
    },
    remove: (owned) =>
      commit("Removing what is not needed any more", (batch) => {
        erase(batch, parts, owned.parts);
        erase(batch, heads, owned.heads);
        erase(batch, marks, owned.marks);
        erase(batch, texts, owned.texts);
      }),
  };

  return {
    name: `Firestore ${projectId}`,
    pageSize: 500,
    get: (id) =>
      ask(`Reading task ${id}`, async () => {
        const found = await tasks.doc(id).get();
        return found.exists ? taskIn(readOf(found)) : undefined;
      }),
    create: (task) => write(`Creating task ${task.id}`, () => tasks.doc(task.id).create(fieldsOf(task))),
    replace: async (task, seen) => {
      if (!isRevision(seen)) return { kind: "refused" };
      const guard = { lastUpdateTime: timestampOf(seen) };
      return write(`Writing task ${task.id}`, () => tasks.doc(task.id).update(fieldsOf(task), guard));
    },
    due: (agent, state, { after, until }, limit) => {
      const query = tasks
        .where("agent", "==", agent)
        .where("state", "==", state)
        .where("shard", "in", SHARDS)
        .where("sweepAt", ">", new Date(after))
        .where("sweepAt", "<=", new Date(until))
        .orderBy("sweepAt")
        .orderBy(FieldPath.documentId())
        .limit(limit);
      const behind = ({ fields, key }: Read) =>
        query.startAfter(timestampOf((fields.sweepAt as Time).time), key);
      const page = (last: Read | undefined) =>
        ask(`Looking for due tasks of ${agent}`, () => answerOf(last ? behind(last) : query, MOST_BYTES));
      return dueOf(page, state, limit);
    },
    list: (filter, limit, cursor) =>
      ask("Listing tasks", async () => {
        const after = cursor === undefined ? undefined : readCursor(cursor);
        const filters = filtersOf(filter);
        const answers = filters.map(async (one) => {
          const query = listed(one).limit(limit);
          const rest = after ? query.startAfter(new Date(after.at), after.id) : query;
          return answerOf(rest, MOST_BYTES / filters.length);
        });
        return pageOf(await Promise.all(answers), limit);
      }),
    count: (filter, most) =>
      ask("Counting tasks", async () => {
        const counts = filtersOf(filter).map(
          async (one) => (await listed(one).limit(most).count().get()).data().count,
        );
        return Math.min(
          most,
          (await Promise.all(counts)).reduce((sum, one) => sum + one, 0),
        );
      }),
    ...changeReader({
      readTime: (what) => ask(what, async () => revisionOf((await records.doc("position").get()).readTime)),
      byName: (what, limit, after) => {
        const query = tasks.orderBy(FieldPath.documentId()).limit(limit);
        return ask(what, () => answerOf(after === undefined ? query : query.startAfter(after), MOST_BYTES));
      },
      byTime: (what, limit, from, after) => {
        const query = tasks
          .where("shard", "in", SHARDS)
          .where(WRITTEN_AT, ">", timestampOf(from))
          .orderBy(WRITTEN_AT)
          .orderBy(FieldPath.documentId())
          .limit(limit);
        const behind = after && query.startAfter(timestampOf(after.at), after.key);
        return ask(what, () => answerOf(behind ?? query, MOST_BYTES));
      },
      many: (what, ids) =>
        ask(what, async () => {
          const found = ids.length > 0 ? await db.getAll(...ids.map((id) => tasks.doc(id))) : [];
          return found.filter(({ exists }) => exists).map(readOf);
        }),
    }),
    getHead: (taskId) =>
      ask(`Reading the journal of ${taskId}`, async () => {
        const found = await heads.doc(taskId).get();
        return found.exists ? headIn(readOf(found)) : undefined;
      }),
    putHead: async (head, seen) => {
      const what = `Writing the journal of ${head.taskId}`;
      const doc = heads.doc(head.taskId);
      if (seen === undefined) return write(what, () => doc.create(headFields(head)));
      return write(what, () => doc.update(headFields(head), { lastUpdateTime: timestampOf(seen) }));
    },
    putPart: (taskId, name, text) =>
      ask(`Storing a part of ${taskId}`, async () => {
        await parts.doc(partId(taskId, name)).set(partFields(taskId, text));
      }),
    getPart: (taskId, name) =>
      ask(`Reading a part of ${taskId}`, async () => {
        const found = await parts.doc(partId(taskId, name)).get();
        return found.exists ? (found.get("text") as string) : undefined;
      }),
    removeParts: (taskId, isOld) => removeParts(removal, taskId, isOld),
    expire: (now, limit) => expireTasks(removal, now, limit),
    getRecord: (name) =>
      ask(`Reading record ${name}`, async () => {
        const found = await records.doc(name).get();
        if (!found.exists || !found.updateTime) return undefined;
        return { text: found.get("text") as string, revision: revisionOf(found.updateTime) };
      }),
    putRecord: async (name, text, seen) => {
      const what = `Writing record ${name}`;
      const doc = records.doc(name);
      if (seen === undefined) return write(what, () => doc.create(recordFields(text)));
      return write(what, () => doc.update(recordFields(text), { lastUpdateTime: timestampOf(seen) }));
    },
    putText: (name, text) =>
      ask(`Storing text ${name}`, async () => {
        await texts.doc(name).set(textFields(text));
      }),
    getText: (name) =>
      ask(`Reading text ${name}`, async () => {
        const found = await texts.doc(name).get();
        return found.exists ? (found.get("text") as string) : undefined;
      }),
    removeTexts: (isOld) => removeTexts(removal, isOld),
    close: async () => {
      // Requests that timed out here are still retried by the client, and closing it under them throws past everyone.
      if (underWay === 0) await db.terminate();
    },
  };
}

function identity({ emulatorHost, credentials }: FirestoreOptions) {
  if (!emulatorHost) return credentials ? { credentials } : {};
  return { host: emulatorHost, ssl: false };
}

function fieldsOf(task: Task) {
  return { ...toFields(task), [WRITTEN_AT]: FieldValue.serverTimestamp() };
}
