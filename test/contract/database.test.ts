import { beforeAll, describe, expect, test } from "vitest";
import { storeIdentity } from "../../functions/wiring/config.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { stores, testNats, wired, world } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
  return () => nats.stop();
});

describe.each(stores.filter(({ kind }) => kind !== "nats-kv"))("$kind", ({ kind, here }) => {
  test.skipIf(!here)("a database of its own has its own documents, for both clients", async () => {
    const { config } = world(nats, kind, { requestTimeout: 15_000 });
    await using tenant = await wired({ ...config, database: "tenant-a" });
    await using other = await wired(config);
    await tenant.bus.ensure({ namespace: config.settings.namespace, agent: "a", lane: 0, generation: 1 });
    await submit(tenant, { agent: "a", lanes: 1, id: "t", input: { of: "tenant" } });
    expect(await other.store.get("t")).toBeUndefined();
    expect((await other.store.list({}, 10)).tasks).toEqual([]);
    const reader = kind === "firestore" ? "firestore-rest" : "firestore";
    await using read = await wired({ ...config, store: reader, database: "tenant-a" });
    expect((await read.store.get("t"))?.task.input).toEqual({ of: "tenant" });
    expect((await read.store.list({}, 10)).tasks).toHaveLength(1);
    // So a queue of one is not taken for the other's.
    expect(storeIdentity({ ...config, database: "tenant-a" })).not.toBe(storeIdentity(config));
  });
});
