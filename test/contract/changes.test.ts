import { jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import type { Found, TaskStore } from "../../shared/ports/store.ts";
import { submitted } from "../../shared/task/create.ts";
import type { Task } from "../../shared/task/document.ts";
import { apply } from "../../shared/task/transitions.ts";
import { memoryStore } from "../../shared/testing/memory-store.ts";
import { raw } from "../support/raw.ts";
import { stores, testNats, wired, world } from "../support/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const mark = () => ({ now: Date.now(), stamp: crypto.randomUUID(), by: "test" });

function newTask(id: string, chars = 1): Task {
  const { now: at, stamp, by } = mark();
  const input = { text: "x".repeat(chars) };
  return submitted({ id, agent: "a", lane: 0, input, inputHash: "h", at, stamp, by }, "Q");
}

const named = (count: number) => Array.from({ length: count }, (_, i) => `t${String(i).padStart(4, "0")}`);

async function manyAtOnce(ids: readonly string[], work: (id: string) => Promise<unknown>): Promise<void> {
  for (let i = 0; i < ids.length; i += 50) await Promise.all(ids.slice(i, i + 50).map(work));
}

const create = (store: TaskStore, ids: readonly string[], chars = 1) =>
  manyAtOnce(ids, (id) => store.create(newTask(id, chars)));

/** Writes a task again, and says at which revision it is from then on. */
async function rewrite(store: TaskStore, id: string): Promise<string> {
  const stored = await store.get(id);
  if (!stored) throw new Error(`no task ${id}`);
  const next = apply(stored.task, { type: "publishDuplicate", layer: "window" }, mark());
  const written = await store.replace(next, stored.revision);
  if (written.kind !== "written") throw new Error(`${id} was not written`);
  return written.revision;
}

interface Pass {
  readonly found: readonly Found[];
  readonly cursor: string;
  readonly pages: number;
}

/** Page after page to the last. */
async function passFrom(
  store: TaskStore,
  after: string | undefined,
  limit: number,
  between: (page: number) => Promise<void> = async () => {},
): Promise<Pass> {
  const found: Found[] = [];
  for (let cursor = after, pages = 1; ; pages++) {
    const page = await store.changes(cursor, limit);
    expect(page.documents.length).toBeLessThanOrEqual(limit);
    found.push(...page.documents);
    if (page.isLast) return { found, cursor: page.cursor, pages };
    cursor = page.cursor;
    expect(pages).toBeLessThan(1_000);
    await between(pages);
  }
}

const keysOf = ({ found }: Pass) => found.map(({ key }) => key);

/** What the reader of a pass knows in the end: the newest that it was given of each. */
const newest = ({ found }: Pass) => new Map(found.map(({ key, revision }) => [key, revision]));

const kinds = [...stores, { kind: "memory" as const, here: true }];

describe.each(kinds)("$kind", ({ kind, here }) => {
  const opened = async () => {
    if (kind === "memory") return { store: memoryStore(), [Symbol.asyncDispose]: async () => {} };
    return wired(world(nats, kind).config);
  };

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
      const pass = await passFrom(own.store, cursor, 10);
      expect(pass.found).toEqual([]);
    });

    test("the time is the server's, and close to ours on one machine", async () => {
      await using own = await opened();
      const { now } = await own.store.position();
      expect(Math.abs(now - Date.now())).toBeLessThan(60_000);
    });

    test("of 1,200 none is missed while 200 are written between the pages", {
      timeout: 180_000,
    }, async () => {
      await using own = await opened();
      const ids = named(1_200);
      await create(own.store, ids);
      for (const from of [undefined, (await own.store.position()).cursor]) {
        const rewritten = new Map<string, string>();
        const again = async (page: number) => {
          // All over them: behind the reader as well as ahead of it.
          for (let i = 0; i < 25 && rewritten.size < 200; i++) {
            const id = ids[(page * 131 + i * 47 + rewritten.size) % ids.length] as string;
            rewritten.set(id, await rewrite(own.store, id));
          }
        };
        // The second time they are all new to the reader.
        if (from !== undefined) await manyAtOnce(ids, (id) => rewrite(own.store, id));
        const pass = await passFrom(own.store, from, 100, again);
        expect(rewritten.size).toBeGreaterThan(from === undefined && kind === "memory" ? 150 : 199);
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

  describe.skipIf(!here || kind === "memory")("the order of writes on a server", () => {
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
