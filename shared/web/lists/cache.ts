/** A value that took a second to get is kept for ten. */
const REST = 10;
const MOST_KEYS = 50;

export interface Cached<T> {
  readonly value: T;
  /** Set where the value came from the cache: in how many milliseconds it expires. */
  readonly again?: number;
}

/**
 * An answer that is used again for ten times as long as it took to get: pages that refresh themselves take a tenth of
 * a store's time at most, however many are open, and a quick store is asked nearly every time. Only answers are kept,
 * no promises: a Worker's request must not wait for another's.
 */
export function cached<T>(
  now: () => number = Date.now,
): (key: string, ask: () => Promise<T>) => Promise<Cached<T>> {
  const kept = new Map<string, { readonly value: T; readonly until: number }>();
  return async (key, ask) => {
    const there = kept.get(key);
    const begun = now();
    if (there && begun < there.until) return { value: there.value, again: there.until - begun };
    const value = await ask();
    const ended = now();
    if (kept.size >= MOST_KEYS) kept.clear();
    kept.set(key, { value, until: ended + REST * (ended - begun) });
    return { value };
  };
}
