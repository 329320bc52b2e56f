import type { Deps } from "../ports/deps.ts";

interface Remembered {
  readonly at: number;
  readonly value: unknown;
}

/** What an operator sets is heeded, and what tasks spend is seen, within so much time. */
export const REMEMBERED = 5_000;

/** By the store that was asked: where a connection lives no longer than its request, so does what is remembered. */
const memories = new WeakMap<object, Map<string, Remembered>>();
const turns = new WeakMap<object, Map<string, Promise<unknown>>>();

function of<T>(all: WeakMap<object, Map<string, T>>, owner: object): Map<string, T> {
  const own = all.get(owner) ?? new Map<string, T>();
  all.set(owner, own);
  return own;
}

/** What was asked not longer ago than so many milliseconds. */
export async function remembered<T>(
  { clock }: Pick<Deps, "clock">,
  owner: object,
  key: string,
  ms: number,
  ask: () => Promise<T>,
): Promise<T> {
  const own = of(memories, owner);
  const last = own.get(key);
  if (last && clock.monotonic() - last.at < ms) return last.value as T;
  const at = clock.monotonic();
  const value = await ask();
  own.set(key, { at, value });
  return value;
}

interface Lately {
  readonly at: number;
  readonly answers: Map<string, Promise<unknown>>;
}

const lately = new WeakMap<object, Lately>();

/**
 * What was asked about many names within so many milliseconds, to look in and to add to. All of it is forgotten at once, or
 * a process would keep every name that it ever heard.
 */
export function askedLately<T>(
  { clock }: Pick<Deps, "clock">,
  owner: object,
  ms: number,
): Map<string, Promise<T>> {
  const at = clock.monotonic();
  const last = lately.get(owner);
  const current = last && at - last.at < ms ? last : { at, answers: new Map() };
  lately.set(owner, current);
  return current.answers as Map<string, Promise<T>>;
}

/** Does work after all that was given before it under one of these keys, which are in one order everywhere. */
export async function inTurn<T>(owner: object, keys: readonly string[], work: () => Promise<T>): Promise<T> {
  const [key, ...others] = keys;
  if (key === undefined) return work();
  const own = of(turns, owner);
  const before = own.get(key) ?? Promise.resolve();
  const mine = before.catch(() => {}).then(() => inTurn(owner, others, work));
  own.set(key, mine);
  try {
    return await mine;
  } finally {
    if (own.get(key) === mine) own.delete(key);
  }
}
