import { messageOf } from "../../errors/errors.ts";
import type { WriteResult } from "../../ports/store.ts";
import { isRefusedWrite, type Status, storeError, within } from "./errors.ts";
import type { TokenSource } from "./google-token.ts";
import { fromRestTime, type Value } from "./query.ts";

export interface FirestoreRestOptions {
  readonly projectId: string;
  /** The database's id: `(default)` where it is left out. */
  readonly database?: string;
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

interface Got {
  readonly found?: RestDocument;
  readonly readTime: string;
}

export type Write = { readonly currentDocument?: object } & (
  | {
      readonly update: { readonly name: string; readonly fields: object };
      readonly updateTransforms?: object[];
    }
  | { readonly delete: string }
);

/** The database that a project has first. */
export const DEFAULT_DATABASE = "(default)";

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
  const { projectId, database = DEFAULT_DATABASE, requestTimeout, token } = options;
  const origin = options.origin ?? "https://firestore.googleapis.com";
  const root = `projects/${projectId}/databases/${database}/documents`;

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

  /** One answer for each document, whether it is there or not; nothing where they are more than `most` bytes. */
  const get = (what: string, body: { documents: string[]; mask?: object }, most?: number) =>
    ask(what, `${root}:batchGet`, body, (answer) => answer as Got[] | undefined, most);

  const read = async (what: string, path: string): Promise<RestDocument | undefined> => {
    // batchGet, because a missing document is an answer there and not an error that looks like a missing database.
    const answers = await get(what, { documents: [path] });
    return answers?.find((answer) => answer.found)?.found;
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

  const count = (what: string, body: object): Promise<number> =>
    ask(what, `${root}:runAggregationQuery`, body, (answer) => {
      const [first] = answer as { result?: { aggregateFields?: { all?: { integerValue?: string } } } }[];
      return Number(first?.result?.aggregateFields?.all?.integerValue ?? 0);
    });

  return { root, get, read, commit, query, count };
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
