import {
  type CollectionReference,
  type DocumentSnapshot,
  FieldPath,
  Firestore,
  type Query,
  type QueryDocumentSnapshot,
  Timestamp,
  type WriteBatch,
} from "@google-cloud/firestore";
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
  readCursor,
  recordFields,
  SHARDS,
  TASKS,
  toFields,
  unordered,
} from "./firestore-codec.ts";
import { isRefusedWrite, type Status, storeError, within } from "./firestore-errors.ts";
import { expireTasks, type Removal, removeParts, type Seen } from "./firestore-expire.ts";

export interface FirestoreOptions {
  readonly projectId: string;
  readonly namespace: string;
  readonly requestTimeout: number;
  /** A service account's; without it, what the environment provides. */
  readonly credentials?: { readonly client_email: string; readonly private_key: string };
  /** host:port. */
  readonly emulatorHost?: string;
}

/** gRPC status numbers, as far as they are told apart here. */
const STATUS: Record<number, Status> = {
  1: "CANCELLED",
  3: "INVALID_ARGUMENT",
  4: "DEADLINE_EXCEEDED",
  5: "NOT_FOUND",
  6: "ALREADY_EXISTS",
  7: "PERMISSION_DENIED",
  8: "RESOURCE_EXHAUSTED",
  9: "FAILED_PRECONDITION",
  10: "ABORTED",
  12: "UNIMPLEMENTED",
  13: "INTERNAL",
  14: "UNAVAILABLE",
  16: "UNAUTHENTICATED",
};

/** Firestore through Google's client: for Node. */
export function firestoreGrpc(options: FirestoreOptions): TaskStore {
  const { projectId, namespace, requestTimeout } = options;
  const db = new Firestore({ projectId, ...identity(options) });
  const tasks = db.collection(TASKS(namespace));
  const heads = db.collection(HEADS(namespace));
  const parts = db.collection(PARTS(namespace));
  const records = db.collection(RECORDS(namespace));
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
    remove: (owned) =>
      commit("Removing what expired tasks owned", (batch) => {
        erase(batch, parts, owned.parts);
        erase(batch, heads, owned.heads);
        erase(batch, marks, owned.marks);
      }),
  };

  return {
    name: `Firestore ${projectId}`,
    pageSize: 500,
    get: (id) => ask(`Reading task ${id}`, async () => stored(await tasks.doc(id).get())),
    create: (task) =>
      write(`Creating task ${task.id}`, () => tasks.doc(task.id).create({ ...toFields(task) })),
    replace: async (task, seen) => {
      if (!isRevision(seen)) return { kind: "refused" };
      const guard = { lastUpdateTime: timestampOf(seen) };
      return write(`Writing task ${task.id}`, () => tasks.doc(task.id).update({ ...toFields(task) }, guard));
    },
    due: (agent, state, { after, until }, limit) =>
      ask(`Looking for due tasks of ${agent}`, async () => {
        const query = tasks
          .where("agent", "==", agent)
          .where("state", "==", state)
          .where("shard", "in", SHARDS)
          .where("sweepAt", ">", new Date(after))
          .where("sweepAt", "<=", new Date(until))
          .orderBy("sweepAt")
          .limit(limit);
        const { found, isCut } = await answerOf(query, MOST_BYTES);
        return { tasks: found, isCut: isCut || found.length === limit };
      }),
    list: (filter, limit, cursor) =>
      ask("Listing tasks", async () => {
        const after = cursor === undefined ? undefined : readCursor(cursor);
        const filters = filtersOf(filter);
        const answers = filters.map(async ({ agent, owner, state, states }) => {
          let query: Query = tasks.where("shard", "in", SHARDS);
          if (agent !== undefined) query = query.where("agent", "==", agent);
          if (owner !== undefined) query = query.where("owner", "==", owner);
          if (state !== undefined) query = query.where("state", "==", state);
          if (states !== undefined) query = query.where("state", "in", [...states]);
          query = query.orderBy("updatedAt", "desc").orderBy(FieldPath.documentId(), "desc").limit(limit);
          if (after) query = query.startAfter(new Date(after.at), after.id);
          return answerOf(query, MOST_BYTES / filters.length);
        });
        return pageOf(await Promise.all(answers), limit);
      }),
    ...unordered,
    getHead: (taskId) =>
      ask(`Reading the journal of ${taskId}`, async () => {
        const found = await heads.doc(taskId).get();
        if (!found.exists || !found.updateTime) return undefined;
        const head = JSON.parse(found.get("json") as string) as Head;
        return { head, revision: revisionOf(found.updateTime) };
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

/** Documents as they come, until they are more than that. */
async function answerOf(query: Query, most: number): Promise<Answer> {
  const found: Stored[] = [];
  let chars = 0;
  for await (const doc of query.stream() as AsyncIterable<QueryDocumentSnapshot>) {
    found.push(stored(doc) as Stored);
    chars += (doc.get("json") as string).length;
    if (chars > most) return { found, isCut: true };
  }
  return { found, isCut: false };
}

function seen({ id, updateTime }: DocumentSnapshot): Seen {
  return { id, revision: revisionOf(updateTime as Timestamp) };
}

function stored(snapshot: DocumentSnapshot): Stored | undefined {
  if (!snapshot.exists || !snapshot.updateTime) return undefined;
  return {
    task: fromFields(snapshot.get("json"), snapshot.ref.path),
    revision: revisionOf(snapshot.updateTime),
  };
}

/** The same text as REST's updateTime carries, so that a message dispatched by one client is claimed by the other. */
function revisionOf(time: Timestamp): string {
  return `${time.seconds}.${String(time.nanoseconds).padStart(9, "0")}`;
}

function timestampOf(revision: string): Timestamp {
  const [seconds, nanos] = revision.split(".");
  return new Timestamp(Number(seconds), Number(nanos));
}

function statusOf(error: unknown): Status {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "number" ? (STATUS[code] ?? `CODE_${code}`) : "UNKNOWN";
}
