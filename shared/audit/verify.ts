import type { Deps } from "../ports/deps.ts";
import {
  type AuditEntry,
  type Page,
  PER_PAGE,
  pageName,
  readPage,
  readTail,
  sealedText,
  TAIL,
  type Tail,
  tailText,
} from "./entry.ts";

export interface Verified {
  /** What shows that somebody altered or removed something; empty where nothing does. */
  readonly problems: readonly string[];
  readonly entries: number;
  /** The first and the last that are kept. */
  readonly first?: number;
  readonly last?: number;
  /** Names the last entry and its seal: keep it elsewhere, and a later look tells whether the trail still has that entry. */
  readonly anchor?: string;
}

const MOST_PROBLEMS = 20;

/**
 * Whether the trail is as it was written: every kept entry is there, in order, and its seal is of it and of the one before.
 * What seals can't show is that the newest entries were cut off together with the record that held them: `anchor` does.
 */
export async function verifyAudit(
  { store, sealer }: Pick<Deps, "store" | "sealer">,
  anchor?: string,
): Promise<Verified> {
  const problems: string[] = [];
  const found = await store.getRecord(TAIL);
  if (!found) return { problems: await withoutTail(store, anchor), entries: 0 };
  const tail = readTail(found.text);
  if (!sealer.isGenuine(tail.seal, tailText(tail)))
    problems.push(
      `The record ${TAIL} was changed after it was sealed${await ofAnotherKey(sealer, tail.seal)}`,
    );

  let before: string | undefined;
  let entries = 0;
  let first: number | undefined;
  let last: AuditEntry | undefined;
  let isAnchored = anchor === undefined;
  for (let page = tail.oldest; page <= tail.page && problems.length < MOST_PROBLEMS; page++) {
    const held = await heldIn(store, tail, page);
    if (!held) {
      problems.push(`Page ${page} is gone, or can't be read: entries ${numbersOf(page, PER_PAGE)}`);
      before = undefined;
      continue;
    }
    if (before !== undefined && held.before !== before)
      problems.push(`Page ${page} does not follow the one before it`);
    const count = page === tail.page ? held.entries.length : PER_PAGE;
    if (held.entries.length !== count)
      problems.push(`Page ${page} should have entries ${numbersOf(page, count)}`);
    before = held.before;
    for (const [i, entry] of held.entries.entries()) {
      const n = (page - 1) * PER_PAGE + 1 + i;
      if (entry.n !== n) problems.push(`Where entry ${n} should be there is ${entry.n}`);
      if (!sealer.isGenuine(entry.seal, sealedText(entry, before)))
        problems.push(
          `Entry ${n} was changed, or the one before it, or was not written by Pawl${await ofAnotherKey(sealer, entry.seal)}`,
        );
      if (anchorOf(entry) === anchor) isAnchored = true;
      before = entry.seal;
      first ??= entry.n;
      last = entry;
      entries++;
    }
  }
  if (!isAnchored)
    problems.push(`There is no entry ${anchor}: what was written since is cut off, or was written anew`);
  return {
    problems: problems.slice(0, MOST_PROBLEMS),
    entries,
    ...(first !== undefined && { first }),
    ...(last && { last: last.n, anchor: anchorOf(last) }),
  };
}

const anchorOf = ({ n, seal }: AuditEntry) => `${n}:${seal}`;
const numbersOf = (page: number, count: number) =>
  `${(page - 1) * PER_PAGE + 1} to ${(page - 1) * PER_PAGE + count}`;

async function heldIn(store: Deps["store"], tail: Tail, page: number): Promise<Page | undefined> {
  if (page === tail.page) return tail;
  const text = await store.getText(pageName(tail, page));
  return text === undefined ? undefined : readPage(text);
}

/** No record is no trail, unless there are pages of one. */
async function withoutTail(store: Deps["store"], anchor: string | undefined): Promise<string[]> {
  const pages: string[] = [];
  // Asked of each name, and none is to be removed: the port has no other way to see them.
  await store.removeTexts((name) => {
    if (/^audit-\d+-\d+$/.test(name)) pages.push(name);
    return false;
  });
  return [
    ...(pages.length > 0
      ? [`The record ${TAIL} is gone, and ${pages.length} pages of a trail are there`]
      : []),
    ...(anchor !== undefined ? [`There is no entry ${anchor}: there is no trail`] : []),
  ];
}

async function ofAnotherKey(sealer: Deps["sealer"], seal: string): Promise<string> {
  return sealer.isOfKnownKey(seal) ? "" : ": it is sealed with a key that PAWL_SEAL_KEY does not have";
}
