import { PawlError } from "../../errors/errors.ts";
import type { Claim, Revision, StoredRecord, TaskStore, WriteResult } from "../../ports/store.ts";
import { leaseKey } from "./bucket.ts";

/** A write is refused after a lost answer, or on an earlier holder's entry; the next one is on what is there. */
const TRIES = 5;

/** What the register needs of a bucket. Without a revision seen, `put` writes only where there is nothing. */
export interface Values {
  get(what: string, key: string): Promise<StoredRecord | undefined>;
  put(what: string, key: string, text: string, seen?: Revision): Promise<WriteResult>;
}

interface Attested {
  /** When its task was created. */
  readonly born: number;
  readonly fence: number;
  readonly token: string;
}

/**
 * A key for each task with the latest claim that was attested. Every attestation is a guarded write: a read only tells
 * it what to write on, so one that was stale gets the write refused.
 */
export function leaseRegister(values: Values): NonNullable<TaskStore["attest"]> {
  return async (claim, known) => {
    const { id, createdAt: born, fence, token } = claim;
    const what = `Attesting the lease of task ${id}`;
    const text = JSON.stringify({ born, fence, token } satisfies Attested);
    let seen = known;
    for (let tries = 0; tries < TRIES; tries++) {
      const result = await values.put(what, leaseKey(id), text, seen);
      if (result.kind === "written") return result.revision;
      const there = await values.get(what, leaseKey(id));
      if (there && isOver(claim, JSON.parse(there.text) as Attested)) return undefined;
      seen = there?.revision;
    }
    throw new PawlError("store_unavailable", `${what}: ${TRIES} writes were refused, each on what was there`);
  };
}

/** Whether another claim has come after this one. Of one fence there is one claim. */
function isOver({ createdAt, fence, token }: Claim, there: Attested): boolean {
  if (there.born !== createdAt) return there.born > createdAt;
  return there.fence === fence ? there.token !== token : there.fence > fence;
}
