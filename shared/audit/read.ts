import type { Deps } from "../ports/deps.ts";
import { CLOCKS_AT_WORST } from "../settings/clocks.ts";
import type { Millis } from "../task/document.ts";
import { type AuditEntry, PER_PAGE, pageName, pageOf, readPage, readTail, TAIL, type Tail } from "./entry.ts";

export interface AuditFilter {
  readonly since?: Millis;
  readonly until?: Millis;
  /** A name or a token's id. */
  readonly actor?: string;
  readonly task?: string;
  readonly op?: string;
  /** Only what was done to tasks of these agents. */
  readonly agents?: readonly string[];
}

export interface AuditPage {
  /** The newest first. */
  readonly entries: readonly AuditEntry[];
  /** Where to go on from; none after the last. A page that looks for what is rare may be short, or empty, and have one. */
  readonly cursor?: string;
}

/** A page that looks for what is rare ends after so many pages of the trail. */
const MOST_PAGES = 100;

/** Entries that the filter lets through, the newest first, from before the one that the cursor names. */
export async function listAudit(
  { store }: Pick<Deps, "store">,
  filter: AuditFilter,
  limit: number,
  cursor?: number,
): Promise<AuditPage> {
  const found = await store.getRecord(TAIL);
  if (!found) return { entries: [] };
  const tail = readTail(found.text);
  const below = cursor ?? Number.MAX_SAFE_INTEGER;
  const entries: AuditEntry[] = [];
  let page = Math.min(tail.page, pageOf(below - 1));
  for (let seen = 0; page >= tail.oldest; page--) {
    if (seen++ === MOST_PAGES) return { entries, cursor: String(firstOf(page + 1)) };
    const held = await entriesOf(store, tail, page);
    for (const entry of held.toReversed()) {
      if (entry.n >= below || !isListed(entry, filter)) continue;
      if (entries.length === limit) return { entries, cursor: String((entries.at(-1) as AuditEntry).n) };
      entries.push(entry);
    }
    // Clocks of those who write differ: a whole page that is older by more than that is followed by older ones only.
    const newest = Math.max(0, ...held.map(({ at }) => at));
    if (held.length > 0 && newest < (filter.since ?? 0) - CLOCKS_AT_WORST) break;
  }
  return { entries };
}

const firstOf = (page: number) => (page - 1) * PER_PAGE + 1;

/** A page that is gone, or can't be read, is no reason to show nothing: to notice it is what verifying is for. */
async function entriesOf(store: Deps["store"], tail: Tail, page: number): Promise<readonly AuditEntry[]> {
  if (page === tail.page) return tail.entries;
  const text = await store.getText(pageName(tail, page));
  return (text !== undefined && readPage(text)?.entries) || [];
}

function isListed(
  { at, actor, task, op, agent }: AuditEntry,
  { since, until, ...wanted }: AuditFilter,
): boolean {
  if (at < (since ?? 0) || at > (until ?? Number.POSITIVE_INFINITY)) return false;
  if (wanted.actor !== undefined && actor.name !== wanted.actor && actor.token !== wanted.actor) return false;
  if (wanted.agents && (agent === undefined || !wanted.agents.includes(agent))) return false;
  return (wanted.task ?? task) === task && (wanted.op ?? op) === op;
}
