import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { accountFill, fullest } from "../../shared/adapters/kv/fill.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { AGENT, agentOf, bench } from "../support/bench.ts";
import { oneOfEach, testNats, wired } from "../support/servers/stores.ts";
import { travel } from "../support/time/clocks.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

describe.each(oneOfEach)("$kind", ({ kind, here }) => {
  test.skipIf(!here)("a quota holds for two instances together, and what is over comes back", async () => {
    const ownerQuota = { tasks: 4, bytes: null };
    await using b = await bench(
      nats,
      kind,
      agentOf(() => "done"),
      { ownerQuota, requestTimeout: 15_000 },
    );
    await using twin = await wired(b.world.config);
    const pass = travel(b.deps);
    const wanted = (i: number) => ({
      agent: AGENT,
      lanes: 1,
      id: `t${i}`,
      input: {},
      meta: { owner: "ann" },
    });
    const crowd = Array.from({ length: 12 }, (_, i) => submit(i % 2 ? b.deps : twin, wanted(i)));
    const answers = await Promise.allSettled(crowd);
    for (const answer of answers)
      if (answer.status === "rejected") expect(answer.reason).toMatchObject({ code: "quota_exceeded" });
    // What one adds while the other counts the documents for the first time may be counted twice: one too few is let in,
    // never one too many.
    const taken = answers.filter(({ status }) => status === "fulfilled").length;
    expect([3, 4]).toContain(taken);
    expect(await b.drain()).toEqual({ completed: taken });
    pass(60_000);
    expect(await submit(b.deps, wanted(100))).toMatchObject({ kind: "accepted" });
  });
});

describe("how full an account is", () => {
  const limits = (max_storage: number) => ({ limits: { max_storage } });
  const account = (given: object) => given as Parameters<typeof accountFill>[0];
  test("by its own limit, or that of the tier for so many copies; nothing where there is none", () => {
    expect(accountFill(account({ storage: 5, ...limits(10) }), 1)).toEqual({ bytes: 5, limit: 10 });
    expect(accountFill(account({ storage: 5, ...limits(-1) }), 1)).toBeUndefined();
    const tiers = { R3: { storage: 7, ...limits(9) } };
    expect(accountFill(account({ storage: 5, ...limits(-1), tiers }), 3)).toEqual({ bytes: 7, limit: 9 });
  });
  test("what is full first counts", () => {
    const [half, most] = [
      { bytes: 5, limit: 10 },
      { bytes: 8, limit: 9 },
    ];
    expect(fullest(half, undefined, most)).toBe(most);
    expect(fullest(undefined)).toBeUndefined();
  });

  test("on a server whose account has a limit, the store is as full as the account", async () => {
    const config = `accounts { A { jetstream: { max_file: 30000000 }, users: [{ user: a, password: b }] } }
no_auth_user: a`;
    await using own = await testNats({ config });
    const none = { storeBytes: -1, queueBytes: -1 };
    await using b = await bench(
      own,
      "nats-kv",
      agentOf(() => 1),
      none,
    );
    const jsm = await jetstreamManager(b.deps.nc);
    await jsm.streams.add({ name: "others", subjects: ["others"] });
    for (let i = 0; i < 25; i++) await b.deps.nc.request("others", new Uint8Array(1_000_000));
    expect(await b.deps.store.usage?.(AGENT)).toMatchObject({ limit: 30_000_000 });
    await expect(b.submit({})).rejects.toMatchObject({ code: "store_full" });
  });
});
