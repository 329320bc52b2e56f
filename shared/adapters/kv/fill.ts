import type { JetStreamAccountStats } from "@nats-io/jetstream";
import type { Fill } from "../../ports/store.ts";

/** How full an account's storage is, by its tier for so many copies where it has tiers; undefined where it has no end. */
export function accountFill(account: JetStreamAccountStats, copies: number): Fill | undefined {
  const { storage, limits } = account.tiers?.[`R${copies}`] ?? account;
  return limits.max_storage > 0 ? { bytes: storage, limit: limits.max_storage } : undefined;
}

/** The one that is full first. */
export function fullest(...all: readonly (Fill | undefined)[]): Fill | undefined {
  return all.filter((one) => one !== undefined).toSorted((a, b) => b.bytes / b.limit - a.bytes / a.limit)[0];
}
