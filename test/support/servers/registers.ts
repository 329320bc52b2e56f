import { expect } from "vitest";
import { leaseRegister } from "../../../shared/adapters/kv/lease.ts";
import type { Claim, TaskStore } from "../../../shared/ports/store.ts";

/** The register of a replicated bucket, in a store of one copy, which has none of its own. */
export function registerIn(store: TaskStore): NonNullable<TaskStore["attest"]> {
  expect(store.attest).toBeUndefined();
  return leaseRegister({
    get: (_, key) => store.getRecord(key),
    put: (_, key, text, seen) => store.putRecord(key, text, seen),
  });
}

export const claimOf = (fence: number, createdAt = 1): Claim => ({
  id: "t",
  agent: "a",
  createdAt,
  fence,
  token: `f${fence}`,
});
