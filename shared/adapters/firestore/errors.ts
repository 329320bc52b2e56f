import { isPawlError, messageOf, PawlError } from "../../errors/errors.ts";

/** Firestore's canonical status, whichever way it came. HTTP codes say less: 409 is both of two opposite things. */
export type Status = string;

const REFUSED: Record<Status, string> = {
  PERMISSION_DENIED: "Give the service account the role Cloud Datastore User",
  UNAUTHENTICATED: "Check GOOGLE_APPLICATION_CREDENTIALS",
  NOT_FOUND: "Check GOOGLE_CLOUD_PROJECT, and that it has a Firestore database in native mode",
  UNIMPLEMENTED: "This database does not know the request",
};

/** The document is not what the writer saw: the one answer that a guarded write expects. */
export function isRefusedWrite(status: Status): boolean {
  return status === "ALREADY_EXISTS" || status === "FAILED_PRECONDITION" || status === "NOT_FOUND";
}

export function storeError(status: Status, error: unknown, what: string): PawlError {
  if (isPawlError(error)) return error;
  if (status === "INVALID_ARGUMENT") {
    return new PawlError("document_refused", `${what}: ${status}: ${messageOf(error)}`, { cause: error });
  }
  const isIndex = status === "FAILED_PRECONDITION" && /index/i.test(messageOf(error));
  const hint = isIndex
    ? "Create the indexes of infra/firestore.indexes.json (docs/deploy.md)"
    : REFUSED[status];
  if (hint)
    return new PawlError("store_refused", `${what}: ${status}: ${messageOf(error)}. ${hint}`, {
      cause: error,
    });
  return new PawlError("store_unavailable", `${what}: ${status}: ${messageOf(error)}`, { cause: error });
}

/** The answer, or `store_unavailable` after `ms`: clients' own time-outs are minutes, a lease is seconds. */
export async function within<T>(ms: number, what: string, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    const error = () => new PawlError("store_unavailable", `${what}: no answer within ${ms} ms`);
    timer = setTimeout(() => reject(error()), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
