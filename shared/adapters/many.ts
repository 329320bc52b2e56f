import type { Found } from "../ports/store.ts";

/** What lies under one id, and how much of it. */
export interface Looked {
  readonly found: Found | undefined;
  readonly chars: number;
}

/** So many documents are given back at once, and asked for together. */
const MOST_IDS = 500;
const AT_ONCE = 100;
/** As long as nobody knows how large they are. */
const FIRST = 8;

/**
 * Looks ids up piece by piece: as many as were asked for, or as many of the first as come to about `most` characters.
 * `look` may say that a piece of several is too much, by undefined.
 */
export async function inPieces(
  ids: readonly string[],
  most: number,
  look: (some: readonly string[]) => Promise<readonly Looked[] | undefined>,
): Promise<(Found | undefined)[]> {
  const found: (Found | undefined)[] = [];
  const wanted = ids.slice(0, MOST_IDS);
  for (let chars = 0, size = FIRST; found.length < wanted.length && chars < most; ) {
    const looked = await look(wanted.slice(found.length, found.length + size));
    if (!looked) {
      size = Math.ceil(size / 8);
      continue;
    }
    found.push(...looked.map((one) => one.found));
    chars += looked.reduce((sum, one) => sum + one.chars, 0);
    const fitting = Math.floor(((most - chars) * found.length) / (chars + 1));
    size = Math.max(1, Math.min(AT_ONCE, fitting));
  }
  return found;
}

/** Does it for each, so many at a time, and answers in their order. */
export async function atOnce<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const done: R[] = [];
  for (let i = 0; i < items.length; i += AT_ONCE)
    done.push(...(await Promise.all(items.slice(i, i + AT_ONCE).map(work))));
  return done;
}
