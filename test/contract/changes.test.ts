import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import {
  create,
  keysOf,
  manyAtOnce,
  named,
  newest,
  newTask,
  passFrom,
  rewrite,
} from "../support/servers/changes.ts";
import { emptyStore, everyStore, isOnServer, testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

describe.each(everyStore)("$kind", ({ kind, here }) => {
  const opened = () => emptyStore(nats, kind);

  describe.skipIf(!here)("the order of writes", () => {
    test("nothing was written: the first page is the last, and empty, and so is what follows", async () => {
      await using own = await opened();
      const all = await passFrom(own.store, undefined, 10);
      expect(all.found).toEqual([]);
      expect((await passFrom(own.store, all.cursor, 10)).found).toEqual([]);
    });

    test("after a place come those that were written since, the longest ago first, as they are now", async () => {
      await using own = await opened();
      await create(own.store, ["a", "b", "c", "d"]);
      const { cursor } = await own.store.position();
      expect((await passFrom(own.store, cursor, 10)).found).toEqual([]);
      const revisions = [
        await rewrite(own.store, "c"),
        await rewrite(own.store, "a"),
        ((await own.store.create(newTask("e"))) as { revision: string }).revision,
      ];
      for (const limit of [1, 2, 10]) {
        const pass = await passFrom(own.store, cursor, limit);
        expect(keysOf(pass), String(limit)).toEqual(["c", "a", "e"]);
        expect(pass.found.map(({ revision }) => revision)).toEqual(revisions);
        expect(pass.found[0]).toMatchObject({ task: { publishDuplicates: { window: 1 } } });
        expect(pass.found.every((one) => !("differs" in one))).toBe(true);
      }
      const all = await passFrom(own.store, undefined, 10);
      expect([...newest(all).keys()].sort()).toEqual(["a", "b", "c", "d", "e"]);
      // Where a pass ended the next begins.
      const last = await passFrom(own.store, cursor, 2);
      await rewrite(own.store, "d");
      expect(keysOf(await passFrom(own.store, last.cursor, 10))).toEqual(["d"]);
    });

    test("other writes than those of documents are no changes", async () => {
      await using own = await opened();
      await create(own.store, ["a"]);
      const { cursor } = await own.store.position();
      for (let i = 0; i < 20; i++) await own.store.putPart("a", `p${i}`, "x");
      await own.store.putRecord("r", "x");
      await own.store.putText("t", "x");
      const pass = await passFrom(own.store, cursor, 10);
      expect(pass.found).toEqual([]);
    });

    test("the time is the server's, and close to ours on one machine", async () => {
      await using own = await opened();
      const { now } = await own.store.position();
      expect(Math.abs(now - Date.now())).toBeLessThan(60_000);
    });

    test("of 200 none is missed while 50 are written between the pages", {
      timeout: 180_000,
    }, async () => {
      await using own = await opened();
      const ids = named(200);
      await create(own.store, ids);
      for (const from of [undefined, (await own.store.position()).cursor]) {
        const rewritten = new Map<string, string>();
        const again = async (page: number) => {
          // All over them: behind the reader as well as ahead of it.
          for (let i = 0; i < 25 && rewritten.size < 50; i++) {
            const id = ids[(page * 131 + i * 47 + rewritten.size) % ids.length] as string;
            rewritten.set(id, await rewrite(own.store, id));
          }
        };
        // The second time they are all new to the reader.
        if (from !== undefined) await manyAtOnce(ids, (id) => rewrite(own.store, id));
        const pass = await passFrom(own.store, from, 16, again);
        expect(rewritten.size).toBeGreaterThan(from === undefined && !isOnServer(kind) ? 37 : 49);
        expect(pass.pages).toBeGreaterThan(11);
        const seen = newest(pass);
        expect([...seen.keys()].sort()).toEqual(ids);
        for (const [id, revision] of rewritten) expect(seen.get(id), id).toBe(revision);
      }
    });

    test("what lies under ids comes in their order, with gaps, and what there is too much of in pieces", async () => {
      await using own = await opened();
      const ids = named(30);
      await create(own.store, ids);
      expect(await own.store.getMany([])).toEqual([]);
      const asked = ["none", "t0007", "t0003", "not/an id", "t0003", "t0029", "also-none"];
      const found = await own.store.getMany(asked);
      expect(found.map((one) => one?.key)).toEqual([
        undefined,
        "t0007",
        "t0003",
        undefined,
        "t0003",
        "t0029",
        undefined,
      ]);
      expect(found[1]).toEqual({ key: "t0007", ...(await own.store.get("t0007")) });
      const many: (string | undefined)[] = [];
      const all = Array.from({ length: 700 }, (_, i) =>
        i % 3 === 0 ? `none-${i}` : (ids[i % 30] as string),
      );
      while (many.length < all.length) {
        const some = await own.store.getMany(all.slice(many.length));
        expect(some.length).toBeGreaterThan(0);
        many.push(...some.map((one) => one?.key));
      }
      expect(many).toEqual(all.map((id) => (id.startsWith("none") ? undefined : id)));
    });
  });

  describe.skipIf(!here || !isOnServer(kind))("the order of writes on a server", () => {
    test("pages of large documents are bounded in bytes, and complete", { timeout: 120_000 }, async () => {
      await using own = await opened();
      const ids = named(40);
      const { cursor } = await own.store.position();
      for (let i = 0; i < ids.length; i += 4) await create(own.store, ids.slice(i, i + 4), 500_000);
      const bound = kind === "nats-kv" ? 16_600_000 : 8_600_000;
      for (const from of [undefined, cursor]) {
        const sizes: number[] = [];
        const measured = {
          ...own.store,
          changes: async (after: string | undefined, limit: number) => {
            const page = await own.store.changes(after, limit);
            sizes.push(JSON.stringify(page.documents).length);
            return page;
          },
        };
        const pass = await passFrom(measured, from, 500);
        expect([...newest(pass).keys()].sort()).toEqual(ids);
        expect(Math.max(...sizes)).toBeLessThan(bound);
      }
      const some = await own.store.getMany(ids);
      expect(some.length).toBeGreaterThan(0);
      expect(JSON.stringify(some).length).toBeLessThan(2 * bound);
      expect(some.length).toBeLessThan(ids.length);
    });

    test("a place that is none is refused", async () => {
      await using own = await opened();
      for (const wrong of ["", "x", "1", "since:", "since:1", "name:1.5:a", "-1.2026", "since:1.000000000:x"])
        await expect(own.store.changes(wrong, 10), wrong).rejects.toMatchObject({ code: "input_invalid" });
    });
  });
});
