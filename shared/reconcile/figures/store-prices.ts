import type { Operations } from "./report.ts";

/**
 * What Firestore asks for document operations, in dollars each: its list price for the multi-region nam5, as it was
 * known on this date. A regional database costs half as much. NATS KV is your own server.
 */
export const storePrices = { date: "2026-01-01", read: 0.06 / 100_000, write: 0.18 / 100_000 } as const;

export function storeCost({ reads, writes }: Operations, store: string): number {
  return store.startsWith("Firestore") ? reads * storePrices.read + writes * storePrices.write : 0;
}
