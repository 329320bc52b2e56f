import { type DocumentSnapshot, FieldPath, Firestore, type Query, Timestamp } from "@google-cloud/firestore";
import type { Stored, TaskStore, WriteResult } from "../ports/store.ts";
import type { Head } from "../task/journal.ts";
import {
  filtersOf,
  fromFields,
  HEADS,
  headFields,
  isRevision,
  PARTS,
  pageOf,
  partFields,
  partId,
  RECORDS,
  readCursor,
  recordFields,
  SHARDS,
  TASKS,
  toFields,
} from "./firestore-codec.ts";
import { isRefusedWrite, type Status, storeError, within } from "./firestore-errors.ts";

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
        return (await query.get()).docs.map((doc) => stored(doc) as Stored);
      }),
    list: (filter, limit, cursor) =>
      ask("Listing tasks", async () => {
        const after = cursor === undefined ? undefined : readCursor(cursor);
        const answers = filtersOf(filter).map(async ({ agent, owner, state, states }) => {
          let query: Query = tasks.where("shard", "in", SHARDS);
          if (agent !== undefined) query = query.where("agent", "==", agent);
          if (owner !== undefined) query = query.where("owner", "==", owner);
          if (state !== undefined) query = query.where("state", "==", state);
          if (states !== undefined) query = query.where("state", "in", [...states]);
          query = query.orderBy("updatedAt", "desc").orderBy(FieldPath.documentId(), "desc").limit(limit);
          if (after) query = query.startAfter(new Date(after.at), after.id);
          return (await query.get()).docs.map((doc) => (stored(doc) as Stored).task);
        });
        return pageOf(await Promise.all(answers), limit);
      }),
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
