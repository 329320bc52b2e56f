import { defaultOf } from "../settings/variables.ts";

/** Requests a minute of one token, where PAWL_RATE_LIMIT does not say. */
export const DEFAULT_RATE = defaultOf("PAWL_RATE_LIMIT");
const MOST_KEYS = 10_000;

/**
 * Whether one more request of this key is too many: a bucket that fills up evenly, with room for a quarter of a minute.
 * It is this instance's own count, which keeps one caller from taking all of it; what the whole of them takes is the
 * platform's to limit. Returns the seconds to wait, or 0.
 */
export function rateLimiter(now: () => number = Date.now): (key: string, perMinute: number) => number {
  const buckets = new Map<string, { left: number; at: number }>();
  return (key, perMinute) => {
    const room = Math.max(1, Math.ceil(perMinute / 4));
    const at = now();
    const bucket = buckets.get(key) ?? { left: room, at };
    const left = Math.min(room, bucket.left + ((at - bucket.at) * perMinute) / 60_000);
    // The key that was quiet longest is forgotten first.
    buckets.delete(key);
    if (buckets.size >= MOST_KEYS) buckets.delete(buckets.keys().next().value as string);
    buckets.set(key, { left: left >= 1 ? left - 1 : left, at });
    return left >= 1 ? 0 : Math.ceil(((1 - left) * 60) / perMinute);
  };
}
