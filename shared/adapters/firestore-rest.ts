import type { Stored, TaskStore, WriteResult } from "../ports/store.ts";
import { messageOf } from "../task/errors.ts";
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
  recordFields,
  TASKS,
  toFields,
} from "./firestore-codec.ts";
import { isRefusedWrite, type Status, storeError, within } from "./firestore-errors.ts";
import { dueQuery, encodeValue, listQuery, type Value } from "./firestore-query.ts";
import type { TokenSource } from "./google-token.ts";

export interface FirestoreRestOptions {
  readonly projectId: string;
  readonly namespace: string;
  readonly requestTimeout: number;
  /** "http://127.0.0.1:8080" for an emulator. */
  readonly origin?: string;
  /** A bearer token for each request; an emulator takes any. */
  readonly token: TokenSource;
}

interface RestDocument {
  readonly name: string;
  readonly fields?: Record<string, Value>;
  readonly updateTime: string;
}

class RestError extends Error {
  override readonly name = "FirestoreRestError";
  readonly status: Status;
  constructor(status: Status, message: string) {
    super(message);
    this.status = status;
  }
}

/** Firestore's REST v1 by fetch: for runtimes where Google's client does not run. */
export function firestoreRest(options: FirestoreRestOptions): TaskStore {
  const { projectId, namespace, requestTimeout, token } = options;
  const origin = options.origin ?? "https://firestore.googleapis.com";
  const root = `projects/${projectId}/databases/(default)/documents`;
  const taskPath = (id: string) => `${root}/${TASKS(namespace)}/${id}`;
  const headPath = (taskId: string) => `${root}/${HEADS(namespace)}/${taskId}`;
  const recordPath = (name: string) => `${root}/${RECORDS(namespace)}/${name}`;
  const partPath = (taskId: string, name: string) => `${root}/${PARTS(namespace)}/${partId(taskId, name)}`;

  const call = async (what: string, path: string, body?: unknown): Promise<unknown> => {
    const request = async (refused?: "refused") => {
      const response = await fetch(`${origin}/v1/${path}`, {
        method: body === undefined ? "GET" : "POST",
        headers: { authorization: `Bearer ${await token(refused)}`, "content-type": "application/json" },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        signal: AbortSignal.timeout(requestTimeout),
      });
      const text = await response.text();
      if (!response.ok) throw restError(response.status, text);
      return JSON.parse(text) as unknown;
    };
    try {
      return await within(requestTimeout, what, request()).catch((error: unknown) => {
        // A clock that was set back keeps a token past its time.
        if (!(error instanceof RestError) || error.status !== "UNAUTHENTICATED") throw error;
        return within(requestTimeout, what, request("refused"));
      });
    } catch (error) {
      throw error instanceof RestError ? error : storeError("UNAVAILABLE", error, what);
    }
  };

  const ask = async <T>(
    what: string,
    path: string,
    body: unknown,
    read: (answer: unknown) => T,
  ): Promise<T> => {
    try {
      return read(await call(what, path, body));
    } catch (error) {
      throw error instanceof RestError ? storeError(error.status, error, what) : error;
    }
  };

  const read = async (what: string, path: string): Promise<RestDocument | undefined> => {
    // batchGet, because a missing document is an answer there and not an error that looks like a missing database.
    const answers = await ask(
      what,
      `${root}:batchGet`,
      { documents: [path] },
      (a) => a as { found?: RestDocument }[],
    );
    return answers.find((answer) => answer.found)?.found;
  };

  const commit = async (what: string, path: string, fields: object, guard?: object): Promise<WriteResult> => {
    const write = {
      update: { name: path, fields: encode(fields) },
      ...(guard && { currentDocument: guard }),
    };
    try {
      const answer = await call(what, `${root}:commit`, { writes: [write] });
      return { kind: "written", revision: fromRestTime(updateTimeOf(answer)) };
    } catch (error) {
      if (!(error instanceof RestError)) throw error;
      if (guard && isRefusedWrite(error.status)) return { kind: "refused" };
      throw storeError(error.status, error, what);
    }
  };

  return {
    name: `Firestore ${projectId} (REST)`,
    pageSize: 500,
    get: async (id) => stored(await read(`Reading task ${id}`, taskPath(id))),
    create: (task) =>
      commit(`Creating task ${task.id}`, taskPath(task.id), toFields(task), { exists: false }),
    replace: async (task, seen) => {
      if (!isRevision(seen)) return { kind: "refused" };
      const guard = { updateTime: toRestTime(seen) };
      return commit(`Writing task ${task.id}`, taskPath(task.id), toFields(task), guard);
    },
    due: (agent, state, range, limit) =>
      ask(
        `Looking for due tasks of ${agent}`,
        `${root}:runQuery`,
        dueQuery(namespace, agent, state, range, limit),
        (answer) =>
          (answer as { document?: RestDocument }[]).flatMap(({ document }) =>
            document ? [stored(document) as Stored] : [],
          ),
      ),
    list: async (filter, limit, cursor) => {
      const answers = filtersOf(filter).map((one) =>
        ask("Listing tasks", `${root}:runQuery`, listQuery(namespace, root, one, limit, cursor), (answer) =>
          (answer as { document?: RestDocument }[]).flatMap(({ document }) => stored(document)?.task ?? []),
        ),
      );
      return pageOf(await Promise.all(answers), limit);
    },
    getHead: async (taskId) => {
      const found = await read(`Reading the journal of ${taskId}`, headPath(taskId));
      if (!found) return undefined;
      const head = JSON.parse(found.fields?.json?.stringValue as string) as Head;
      return { head, revision: fromRestTime(found.updateTime) };
    },
    putHead: (head, seen) => {
      const guard = seen === undefined ? { exists: false } : { updateTime: toRestTime(seen) };
      return commit(`Writing the journal of ${head.taskId}`, headPath(head.taskId), headFields(head), guard);
    },
    putPart: async (taskId, name, text) => {
      await commit(`Storing a part of ${taskId}`, partPath(taskId, name), partFields(taskId, text));
    },
    getPart: async (taskId, name) => {
      const found = await read(`Reading a part of ${taskId}`, partPath(taskId, name));
      return found?.fields?.text?.stringValue as string | undefined;
    },
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
      return commit(`Writing record ${name}`, recordPath(name), recordFields(text), guard);
    },
    close: async () => {},
  };
}

function stored(document: RestDocument | undefined): Stored | undefined {
  if (!document) return undefined;
  const task = fromFields(document.fields?.json?.stringValue, document.name);
  return { task, revision: fromRestTime(document.updateTime) };
}

function encode(fields: object): Record<string, Value> {
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, encodeValue(value)]));
}

function updateTimeOf(answer: unknown): string {
  const { writeResults } = answer as { writeResults: { updateTime: string }[] };
  return writeResults[0]?.updateTime as string;
}

/** "2026-11-16T02:24:00.123456Z" ↔ "1794795840.123456000", the form that the gRPC client uses. */
function fromRestTime(time: string): string {
  const [whole, fraction = ""] = time.replace("Z", "").split(".");
  return `${Date.parse(`${whole}Z`) / 1000}.${fraction.padEnd(9, "0")}`;
}

function toRestTime(revision: string): string {
  const [seconds, nanos] = revision.split(".");
  return `${new Date(Number(seconds) * 1000).toISOString().slice(0, 19)}.${nanos}Z`;
}

function restError(code: number, text: string): RestError {
  try {
    const parsed: unknown = JSON.parse(text);
    const body = (Array.isArray(parsed) ? parsed[0] : parsed) as {
      error: { status: string; message: string };
    };
    return new RestError(body.error.status, body.error.message);
  } catch (error) {
    return new RestError(`HTTP_${code}`, `${text.slice(0, 200) || messageOf(error)}`);
  }
}
