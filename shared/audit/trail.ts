import { type Deps, uniqueToken } from "../ports/deps.ts";
import type { StoredRecord } from "../ports/store.ts";
import { attempt, persist } from "../retry/guarded-write.ts";
import { whilePatient } from "../retry/patience.ts";
import { pause } from "../retry/retry.ts";
import {
  type AuditEntry,
  type AuditFacts,
  type Page,
  PER_PAGE,
  pageName,
  readTail,
  sealEntry,
  sealTail,
  TAIL,
  type Tail,
} from "./entry.ts";

/**
 * Adds an entry: one read and one guarded write. Of many who add at once each gets a number of its own. A full page is stored
 * first, whole and for good, and only then left by the guarded write: whoever dies between leaves a copy that the next one
 * writes again, the same to the letter.
 */
export async function append(deps: Deps, facts: AuditFacts): Promise<AuditEntry> {
  const guard = whilePatient(deps, "The audit trail");
  const stamp = uniqueToken();
  for (let refusals = 0; ; ) {
    const seen = await persist(deps, TAIL, guard, () => deps.store.getRecord(TAIL));
    const tail = seen && readTail(seen.text);
    // Its answer was lost, and it was written.
    const own = tail?.entries.find((one) => one.stamp === stamp);
    if (own) return own;
    const open = await withRoom(deps, tail);
    const last = open.entries.at(-1);
    const n = last ? last.n + 1 : (open.page - 1) * PER_PAGE + 1;
    const place = { n, at: deps.clock.now(), stamp, before: last?.seal ?? open.before };
    const entry = await sealEntry(deps.sealer, facts, place);
    const next = await sealTail(deps.sealer, { ...open, entries: [...open.entries, entry] });
    const result = await attempt(deps, TAIL, guard, () => putTail(deps, next, seen));
    if (result.kind === "written") return entry;
    if (result.kind === "refused") await pause(deps, "bystander", ++refusals);
  }
}

export function putTail({ store }: Pick<Deps, "store">, tail: Tail, seen: StoredRecord | undefined) {
  return store.putRecord(TAIL, JSON.stringify(tail), seen?.revision);
}

/** A page with a place for one more. */
async function withRoom(deps: Deps, tail: Tail | undefined): Promise<Omit<Tail, "seal">> {
  if (!tail) return { v: 1, born: deps.clock.now(), page: 1, oldest: 1, before: "", entries: [] };
  const { seal: _, ...open } = tail;
  if (tail.entries.length < PER_PAGE) return open;
  const { v, born, page, before, entries } = tail;
  const full: Page = { v, born, page, before, entries };
  await deps.store.putText(pageName(tail, page), JSON.stringify(full));
  const last = entries.at(-1) as AuditEntry;
  const isOldest = tail.oldest === page;
  return {
    ...open,
    ...(isOldest && { oldestUntil: last.at }),
    page: page + 1,
    before: last.seal,
    entries: [],
  };
}
