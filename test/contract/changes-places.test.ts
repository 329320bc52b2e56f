import { jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import type { Found } from "../../shared/ports/store.ts";
import { create, keysOf, named, newest, newTask, passFrom, rewrite } from "../support/servers/changes.ts";
import { raw } from "../support/servers/raw.ts";
import { stores, testNats, wired, world } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test("after a place in a bucket that was made anew, or set back, all documents come", async () => {
  const { config } = world(nats, "nats-kv");
  await using before = await wired(config);
  await create(before.store, named(5));
  const { cursor } = await before.store.position();
  const jsm = await jetstreamManager(before.nc);
  await jsm.streams.delete(`KV_${config.settings.namespace}-tasks`);
  await using after = await wired(config);
  await create(after.store, named(20));
  expect(keysOf(await passFrom(after.store, cursor, 100)).sort()).toEqual(named(20));
  const { cursor: now } = await after.store.position();
  const [revision = "", ...created] = now.split(".");
  const ahead = [Number(revision) + 1_000, ...created].join(".");
  expect(keysOf(await passFrom(after.store, ahead, 100)).sort()).toEqual(named(20));
});

test("deleted keys neither come nor keep the last page from being it", async () => {
  const { config } = world(nats, "nats-kv");
  await using own = await wired(config);
  const kv = await new Kvm(own.nc).open(`${config.settings.namespace}-tasks`);
  await create(own.store, named(5));
  await kv.delete("task.t0001");
  await kv.purge("task.t0004");
  expect(keysOf(await passFrom(own.store, undefined, 2)).sort()).toEqual(["t0000", "t0002", "t0003"]);
});

describe.each(stores.filter(({ kind }) => kind !== "nats-kv"))("$kind", ({ kind, here }) => {
  test.skipIf(!here)(
    "documents of earlier versions come among all, and in order once they are written",
    async () => {
      const { config } = world(nats, kind);
      await using own = await wired(config);
      const past = await raw(own, config.project);
      const { cursor } = await own.store.position();
      await past.putTask("old", JSON.stringify(newTask("old")));
      await create(own.store, ["new"]);
      expect([...newest(await passFrom(own.store, undefined, 10)).keys()].sort()).toEqual(["new", "old"]);
      expect(keysOf(await passFrom(own.store, cursor, 10))).toEqual(["new"]);
      await rewrite(own.store, "old");
      expect(keysOf(await passFrom(own.store, cursor, 10))).toEqual(["new", "old"]);
    },
  );

  test.skipIf(!here)("what a query would find and the document denies is named", async () => {
    const { config } = world(nats, kind);
    await using own = await wired(config);
    const past = await raw(own, config.project);
    const { cursor } = await own.store.position();
    const at = "2026-11-16T02:24:00.123Z";
    const lies = {
      agent: { stringValue: "b" },
      state: { stringValue: "completed" },
      owner: { stringValue: "eve" },
      stamp: { stringValue: "other" },
      fence: { integerValue: "7" },
      updatedAt: { timestampValue: at },
      sweepAt: { nullValue: null },
      shard: { integerValue: "9" },
      expiresAt: { timestampValue: at },
    };
    for (const [field, value] of Object.entries(lies)) {
      const id = field.toLowerCase();
      const task = newTask(id);
      await own.store.create(task);
      await past.putTask(id, JSON.stringify(task), { [field]: value });
    }
    await own.store.create(newTask("true"));
    const told = (found: readonly (Found | undefined)[]) =>
      found.map((one) => one && [one.key, "differs" in one ? one.differs : undefined]);
    const wanted = [...Object.keys(lies).map((field) => [field.toLowerCase(), field]), ["true", undefined]];
    expect(told(await own.store.getMany(wanted.map(([id]) => id as string)))).toEqual(wanted);
    const all = new Map(told((await passFrom(own.store, undefined, 4)).found) as [string, string][]);
    expect(all).toEqual(new Map(wanted as [string, string][]));
    // In no shard it is in no query.
    const inOrder = told((await passFrom(own.store, cursor, 4)).found);
    expect(inOrder).toEqual(wanted.filter(([id]) => id !== "shard"));
  });
});
