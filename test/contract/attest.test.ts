import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import { claimOf, registerIn } from "../support/servers/registers.ts";
import { emptyStore, testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** Stores of several copies: the simulator's, and a bucket of one copy with the register that more would give it. */
const replicated = [
  { kind: "nats-kv", attestOf: registerIn },
  {
    kind: "simulated, replicated",
    attestOf: ({ attest }: TaskStore) => attest as NonNullable<typeof attest>,
  },
] as const;

describe.each(replicated)("$kind", ({ kind, attestOf }) => {
  test("the register of leases takes no claim after a later one", async () => {
    await using own = await emptyStore(nats, kind);
    const attest = attestOf(own.store);
    const first = await attest(claimOf(1));
    const again = await attest(claimOf(1), first);
    // The answer to the last one was lost: what is known is old, or nothing.
    const healed = await attest(claimOf(1), first);
    expect(new Set([first, again, healed, await attest(claimOf(1))]).size).toBe(4);

    const second = await attest(claimOf(2));
    expect(second).toBeDefined();
    for (const known of [undefined, first, healed]) {
      expect(await attest(claimOf(1), known)).toBeUndefined();
      expect(await attest({ ...claimOf(2), token: "another" }, known)).toBeUndefined();
    }
    expect(await attest(claimOf(2), second)).toBeDefined();
    // The id was forgotten and is used again.
    expect(await attest(claimOf(1, 2))).toBeDefined();
    expect(await attest(claimOf(2), second)).toBeUndefined();
  });

  test("of claims that are attested at once the latest stands in the end", async () => {
    await using own = await emptyStore(nats, kind);
    const attest = attestOf(own.store);
    const fences = Array.from({ length: 12 }, (_, i) => i + 1);
    // One that was refused too often says so, and is asked again by the next beat.
    await Promise.allSettled(fences.map((fence) => attest(claimOf(fence))));
    expect(await attest(claimOf(12))).toBeDefined();
    for (const fence of fences.slice(0, -1)) expect(await attest(claimOf(fence))).toBeUndefined();
  });
});
