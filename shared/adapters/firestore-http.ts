import type { WriteResult } from "../ports/store.ts";
import { messageOf } from "../task/errors.ts";
import { isRefusedWrite, type Status, storeError, within } from "./firestore-errors.ts";
import type { Value } from "./firestore-query.ts";
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

export interface RestDocument {
  readonly name: string;
  readonly fields?: Record<string, Value>;
  readonly updateTime: string;
}

export type Write = { readonly currentDocument?: object } & (
  | { readonly update: { readonly name: string; readonly fields: object } }
  | { readonly delete: string }
);

class RestError extends Error {
  override readonly name = "FirestoreRestError";
  readonly status: Status;
  constructor(status: Status, message: string) {
    super(message);
    this.status = status;
  }
}

/** What REST v1 is asked: documents, queries, commits. */
export function firestoreHttp(options: FirestoreRestOptions) {
  const { projectId, requestTimeout, token } = options;
  const origin = options.origin ?? "https://firestore.googleapis.com";
  const root = `projects/${projectId}/databases/(default)/documents`;

  const call = async (what: string, path: string, body: unknown, most = Infinity): Promise<unknown> => {
    const request = async (refused?: "refused") => {
      const response = await fetch(`${origin}/v1/${path}`, {
        method: "POST",
        headers: { authorization: `Bearer ${await token(refused)}`, "content-type": "application/json" },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(requestTimeout),
      });
      const text = await textOf(response, most);
      if (!response.ok) throw restError(response.status, text ?? "");
      return text === undefined ? undefined : (JSON.parse(text) as unknown);
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
    most?: number,
  ): Promise<T> => {
    try {
      return read(await call(what, path, body, most));
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

  const commit = async (what: string, writes: readonly Write[], isGuarded = true): Promise<WriteResult> => {
    try {
      const answer = await call(what, `${root}:commit`, { writes });
      return { kind: "written", revision: fromRestTime(updateTimeOf(answer)) };
    } catch (error) {
      if (!(error instanceof RestError)) throw error;
      if (isGuarded && isRefusedWrite(error.status)) return { kind: "refused" };
      throw storeError(error.status, error, what);
    }
  };

  const query = (what: string, body: object, most?: number): Promise<RestDocument[] | undefined> =>
    ask(
      what,
      `${root}:runQuery`,
      body,
      (answer) =>
        (answer as { document?: RestDocument }[] | undefined)?.flatMap(({ document }) => document ?? []),
      most,
    );

  return { root, ask, read, commit, query };
}

/** The whole of it, or nothing where it is more than that: the rest is not waited for. */
async function textOf(response: Response, most: number): Promise<string | undefined> {
  if (most === Infinity || !response.body) return response.text();
  const decoder = new TextDecoder();
  const pieces: string[] = [];
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += chunk.length;
    if (bytes > most) return undefined;
    pieces.push(decoder.decode(chunk, { stream: true }));
  }
  return pieces.join("") + decoder.decode();
}

function updateTimeOf(answer: unknown): string {
  const { writeResults, commitTime } = answer as Record<"commitTime", string> & {
    writeResults: { updateTime?: string }[];
  };
  // A removal has none.
  return writeResults[0]?.updateTime ?? commitTime;
}

/** "2026-11-16T02:24:00.123456Z" ↔ "1794795840.123456000", the form that the gRPC client uses. */
export function fromRestTime(time: string): string {
  const [whole, fraction = ""] = time.replace("Z", "").split(".");
  return `${Date.parse(`${whole}Z`) / 1000}.${fraction.padEnd(9, "0")}`;
}

export function toRestTime(revision: string): string {
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
