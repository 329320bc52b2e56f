/** Most that is remembered: what was set longest ago goes first. */
const MOST = 10_000;

export interface Remembered<V> {
  get(key: string): V | undefined;
  set(key: string, value: V): void;
  forget(key: string): void;
}

/** What this instance has found out, for a while and never too much of it. */
export function remembered<V>(ms: number, now: () => number): Remembered<V> {
  const all = new Map<string, { readonly value: V; readonly until: number }>();
  return {
    get: (key) => {
      const found = all.get(key);
      return found && found.until > now() ? found.value : undefined;
    },
    set: (key, value) => {
      all.delete(key);
      if (all.size >= MOST) all.delete(all.keys().next().value as string);
      all.set(key, { value, until: now() + ms });
    },
    forget: (key) => void all.delete(key),
  };
}
