import { defaultOf } from "../settings/variables.ts";

/** Requests a minute of one token, where PAWL_RATE_LIMIT does not say. */
export const DEFAULT_RATE = defaultOf("PAWL_RATE_LIMIT");
const MOST_KEYS = 10_000;

/** So many bytes of a body are read, parsed and checked for what another request costs as a whole. */
const BYTES_A_REQUEST = 16 * 1024;
/** So many documents are looked at for a list. */
const DOCUMENTS_A_REQUEST = 50;

/** What a body costs beside the request that it comes with. */
export const costOfBytes = (bytes: number) => Math.floor(bytes / BYTES_A_REQUEST);
/** What a list costs beside the request that it is asked for by. */
export const costOfLook = (documents: number) => Math.floor(documents / DOCUMENTS_A_REQUEST);

/**
 * Takes what something costs. Returns the seconds to wait before it may be done, and takes nothing then; or 0. "owed": it
 * was done before anybody knew its cost, which is taken in any case.
 */
export type Charge = (cost: number, how?: "owed") => number;

/**
 * Whether one more request of this key is too many: a bucket that fills up evenly, with room for a quarter of a minute. What
 * costs more than one request is let through by a bucket that has as much, or is half full, and may leave it with a debt.
 * It is this instance's own count, which keeps one caller from taking all of it; what the whole of them takes is the
 * platform's to limit. Returns the seconds to wait, or 0. A cost of -1 gives back what was taken too much.
 */
export function rateLimiter(
  now: () => number = Date.now,
): (key: string, perMinute: number, cost?: number, how?: "owed") => number {
  const buckets = new Map<string, { left: number; at: number }>();
  return (key, perMinute, cost = 1, how) => {
    const room = Math.max(1, Math.ceil(perMinute / 4));
    const at = now();
    const bucket = buckets.get(key) ?? { left: room, at };
    const left = Math.min(room, bucket.left + ((at - bucket.at) * perMinute) / 60_000);
    const needed = Math.min(cost, Math.max(1, room / 2));
    const isTaken = how === "owed" || cost < 0 || left >= needed;
    // The key that was quiet longest is forgotten first.
    buckets.delete(key);
    if (buckets.size >= MOST_KEYS) buckets.delete(buckets.keys().next().value as string);
    buckets.set(key, { left: isTaken ? Math.min(room, left - cost) : left, at });
    return isTaken ? 0 : Math.ceil(((needed - left) * 60) / perMinute);
  };
}
