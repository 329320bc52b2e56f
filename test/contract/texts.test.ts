import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { type EmptyStore, emptyStore, everyStore, testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** About 900 kB, in characters of one to four bytes. */
const large = (word: string) => `{"é":"${"你".repeat(299_000)}👩 ${word}"}`;

describe.each(everyStore)("$kind", ({ kind, here }) => {
  describe.skipIf(!here)("what is beside the documents", () => {
    let own: EmptyStore;
    beforeAll(async () => {
      own = await emptyStore(nats, kind);
    });
    afterAll(() => own[Symbol.asyncDispose]());

    test("of a part the last write stands, and no other part is touched by it", async () => {
      const { store } = own;
      expect(await store.getPart("parted", "settled-0")).toBeUndefined();
      for (const word of ["first", "first", "second"]) {
        await store.putPart("parted", "settled-0", large(word));
        expect(await store.getPart("parted", "settled-0")).toBe(large(word));
      }
      await store.putPart("parted", "settled-1", "");
      expect(await store.getPart("parted", "settled-1")).toBe("");
      expect(await store.getPart("parted-too", "settled-0")).toBeUndefined();
      expect(await store.getText("settled-0")).toBeUndefined();
    });

    test("of a text the last write stands, and it is no part and no record", async () => {
      const { store } = own;
      expect(await store.getText("2026-W46-x-html")).toBeUndefined();
      for (const word of ["first", "first", "second"]) {
        await store.putText("2026-W46-x-html", large(word));
        expect(await store.getText("2026-W46-x-html")).toBe(large(word));
      }
      expect(await store.getText("2026-W46-x-md")).toBeUndefined();
      expect(await store.getRecord("2026-W46-x-html")).toBeUndefined();
    });

    test("texts are removed by name, however many; parts and records of the same names stay", async () => {
      await using some = await emptyStore(nats, kind);
      const { store } = some;
      const old = Array.from({ length: 310 }, (_, i) => `book-${i}`);
      for (let i = 0; i < old.length; i += 31)
        await Promise.all(old.slice(i, i + 31).map((name) => store.putText(name, name)));
      await store.putText("kept", "");
      await store.putPart("t", "book-1", "part");
      await store.putRecord("book-1", "record");
      await store.removeTexts((name) => name.startsWith("book-"));
      expect(await Promise.all(old.map((name) => store.getText(name)))).toEqual(old.map(() => undefined));
      expect(await store.getText("kept")).toBe("");
      expect(await store.getPart("t", "book-1")).toBe("part");
      expect((await store.getRecord("book-1"))?.text).toBe("record");
      await store.putText("book-1", "again");
      expect(await store.getText("book-1")).toBe("again");
    });

    test("a record is made once: whoever saw none is refused where there is one, with any text", async () => {
      const { store } = own;
      expect(await store.getRecord("made")).toBeUndefined();
      const made = await Promise.all(Array.from({ length: 20 }, (_, i) => store.putRecord("made", `${i}`)));
      const won = made.findIndex(({ kind }) => kind === "written");
      expect(made.filter(({ kind }) => kind === "written")).toHaveLength(1);
      const there = await store.getRecord("made");
      expect(there?.text).toBe(String(won));
      expect(made[won]).toMatchObject({ revision: there?.revision });
      for (const text of [String(won), "another"])
        expect(await store.putRecord("made", text)).toEqual({ kind: "refused" });
      expect(await store.getRecord("made")).toEqual(there);
    });

    test("a record is replaced by who saw it last, and by nobody else", async () => {
      const { store } = own;
      const first = await store.putRecord("moved", large("first"));
      if (first.kind !== "written") throw new Error("not made");
      const next = await Promise.all(
        Array.from({ length: 20 }, (_, i) => store.putRecord("moved", large(`${i}`), first.revision)),
      );
      const won = next.findIndex(({ kind }) => kind === "written");
      expect(next.filter(({ kind }) => kind === "written")).toHaveLength(1);
      const there = await store.getRecord("moved");
      expect(there?.text).toBe(large(`${won}`));
      expect(next[won]).toMatchObject({ revision: there?.revision });
      expect(await store.putRecord("moved", "stale", first.revision)).toEqual({ kind: "refused" });
      expect(await store.putRecord("none", "there", first.revision)).toEqual({ kind: "refused" });
      expect([await store.getRecord("moved"), await store.getRecord("none")]).toEqual([there, undefined]);
      // The same text is a write too: who saw the one before it has not seen it.
      const same = await store.putRecord("moved", large(`${won}`), there?.revision);
      expect(same.kind).toBe("written");
      expect(await store.putRecord("moved", "stale", there?.revision)).toEqual({ kind: "refused" });
    });
  });
});
