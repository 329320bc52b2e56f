import type { Deps } from "../ports/deps.ts";
import { type AuditEntry, pageName, readPage, readTail, sealTail, TAIL, type Tail } from "./entry.ts";
import { putTail } from "./trail.ts";

/** So many pages go at once at most. */
const MOST_AT_ONCE = 50;

/**
 * Removes pages whose newest entry is older than the retention of the trail. The record says first that they are gone, so that
 * nobody takes them for missing; who dies after that leaves pages that the next one removes. Two at once are harmless. Where
 * nothing is that old it is one read. Returns how many pages went.
 */
export async function trimAudit(
  deps: Pick<Deps, "store" | "clock" | "log" | "sealer" | "settings">,
): Promise<number> {
  const { store, clock, settings, sealer, log } = deps;
  const seen = await store.getRecord(TAIL);
  if (!seen) return 0;
  const tail = readTail(seen.text);
  // Who cancelled a task is known for as long as the task is.
  const until = clock.now() - Math.max(settings.auditRetention, settings.retention);
  let { oldest, oldestUntil } = tail;
  for (let i = 0; i < MOST_AT_ONCE && oldestUntil !== undefined && oldestUntil < until; i++) {
    oldest++;
    oldestUntil = await newestIn(deps, tail, oldest);
  }
  const removed = oldest - tail.oldest;
  if (removed === 0) return 0;
  const { seal: _, oldestUntil: __, ...rest } = tail;
  const next = { ...rest, oldest, ...(oldestUntil !== undefined && { oldestUntil }) };
  const written = await putTail(deps, await sealTail(sealer, next), seen);
  // Somebody added an entry meanwhile: the next one removes them.
  if (written.kind === "refused") return 0;
  const isOld = pagesBefore(tail, oldest);
  await store.removeTexts(isOld);
  log("info", "audit.trimmed", { pages: removed });
  return removed;
}

/** Pages of this trail before that one, among them what one that died left. */
function pagesBefore(tail: Tail, oldest: number): (name: string) => boolean {
  const prefix = pageName(tail, 0).slice(0, -1);
  return (name) => name.startsWith(prefix) && Number(name.slice(prefix.length)) < oldest;
}

/** None of the page that entries are added to. A page that can't be read stays until the next one is old: it counts as that old. */
async function newestIn(
  { store }: Pick<Deps, "store">,
  tail: Tail,
  page: number,
): Promise<number | undefined> {
  if (page >= tail.page) return undefined;
  const text = await store.getText(pageName(tail, page));
  const last = (text !== undefined && readPage(text)?.entries.at(-1)) as AuditEntry | undefined | false;
  return last ? last.at : tail.oldestUntil;
}
