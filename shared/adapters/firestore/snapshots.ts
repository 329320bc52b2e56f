import {
  type DocumentSnapshot,
  type Query,
  type QueryDocumentSnapshot,
  Timestamp,
} from "@google-cloud/firestore";
import type { Status } from "./errors.ts";
import type { Seen } from "./expire.ts";
import { type Answer, charsOf, type Read } from "./pages.ts";

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

export function statusOf(error: unknown): Status {
  const code = (error as { code?: unknown } | undefined)?.code;
  return typeof code === "number" ? (STATUS[code] ?? `CODE_${code}`) : "UNKNOWN";
}

/** Documents as they come, until they are more than that. */
export async function answerOf(query: Query, most: number): Promise<Answer> {
  const found: Read[] = [];
  let chars = 0;
  for await (const doc of query.stream() as AsyncIterable<QueryDocumentSnapshot>) {
    const read = readOf(doc);
    found.push(read);
    chars += charsOf(read);
    if (chars > most) return { found, isCut: true };
  }
  return { found, isCut: false };
}

/** A snapshot of a document that exists. */
export function readOf(snapshot: DocumentSnapshot): Read {
  const { id: key, revision } = seen(snapshot);
  const fields = Object.entries(snapshot.data() ?? {}).map(([name, value]: [string, unknown]) => [
    name,
    value instanceof Timestamp ? { time: revisionOf(value) } : value,
  ]);
  return { key, revision, fields: Object.fromEntries(fields) };
}

export function seen({ id, updateTime }: DocumentSnapshot): Seen {
  return { id, revision: revisionOf(updateTime as Timestamp) };
}

/** The same text as REST's updateTime carries, so that a message dispatched by one client is claimed by the other. */
export function revisionOf(time: Timestamp): string {
  return `${time.seconds}.${String(time.nanoseconds).padStart(9, "0")}`;
}

export function timestampOf(revision: string): Timestamp {
  const [seconds, nanos] = revision.split(".");
  return new Timestamp(Number(seconds), Number(nanos));
}
