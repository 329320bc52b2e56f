import type { Deps } from "../ports/deps.ts";
import type { Revision, StoredRecord } from "../ports/store.ts";
import { askedLately } from "./memory.ts";
import type { Usage } from "./usage.ts";

/** Whether one has a record in a queue is looked at no more often than this: nearly nobody has, and everybody submits. */
const LOOK_EVERY = 1_000;

/** A record as it was not much longer ago than a second. */
export function seenLately(deps: Deps, record: string): Promise<StoredRecord | undefined> {
  const asked = askedLately<StoredRecord | undefined>(deps, deps.store, LOOK_EVERY);
  const last = asked.get(record);
  if (last) return last;
  const found = deps.store.getRecord(record);
  asked.set(record, found);
  // Who asks next is not given the same error.
  found.catch(() => asked.delete(record));
  return found;
}

/** Writes what one has used. False where somebody else has. */
export async function write(
  deps: Deps,
  record: string,
  usage: Usage,
  seen: Revision | undefined,
): Promise<boolean> {
  const text = JSON.stringify(usage);
  const written = await deps.store.putRecord(record, text, seen);
  const asked = askedLately<StoredRecord | undefined>(deps, deps.store, LOOK_EVERY);
  if (written.kind === "written") asked.set(record, Promise.resolve({ text, revision: written.revision }));
  else asked.delete(record);
  return written.kind === "written";
}
