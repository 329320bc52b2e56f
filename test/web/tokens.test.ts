import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { sha256 } from "../../shared/values/json.ts";
import { listedHashes, tokenIdOf } from "../../shared/web/token-list.ts";
import {
  createToken,
  findToken,
  moveFormerTokens,
  revokeToken,
  type Token,
} from "../../shared/web/tokens.ts";
import { emptyStore, everyStore, testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** With the id that follows from its hash. */
const known = async (text: string) => ({ ...ANN, id: tokenIdOf(sha256(text)) });

const ANN: Token = { owner: "ann", scopes: ["submit"], agents: ["echo"], createdAt: 7 };

describe.each(everyStore)("$kind", ({ kind, here }) => {
  describe.skipIf(!here)("tokens", () => {
    test("a token is known until it is revoked, and of many who revoke it one does", async () => {
      await using own = await emptyStore(nats, kind);
      const text = await createToken(own.store, ANN);
      const other = await createToken(own.store, { ...ANN, owner: "bob" });
      expect(await findToken(own.store, text)).toEqual(await known(text));
      const revoked = await Promise.all(Array.from({ length: 8 }, () => revokeToken(own.store, text)));
      expect(revoked.filter(Boolean)).toHaveLength(1);
      expect(await findToken(own.store, text)).toBeUndefined();
      expect(await revokeToken(own.store, text)).toBeUndefined();
      expect(await findToken(own.store, other)).toMatchObject({ owner: "bob" });
    });

    test("tokens that are made at once are all listed, and each can be revoked by its id", async () => {
      await using own = await emptyStore(nats, kind);
      const { store } = own;
      const made = await Promise.all(Array.from({ length: 12 }, () => createToken(store, ANN)));
      const hashes = await Promise.all(made.map((text) => sha256(text)));
      expect((await listedHashes(store)).toSorted()).toEqual(hashes.toSorted());
      const [first = "", ...others] = hashes;
      expect(await revokeToken(store, tokenIdOf(first))).toMatchObject({ owner: "ann" });
      expect(await findToken(store, made[0] as string)).toBeUndefined();
      expect(await revokeToken(store, tokenIdOf(first))).toBeUndefined();
      expect((await listedHashes(store)).toSorted()).toEqual(others.toSorted());
      expect(await revokeToken(store, "tok_0123456789abcdef")).toBeUndefined();
    });

    test("a token of an earlier version is none until a person has taken it over", async () => {
      await using own = await emptyStore(nats, kind);
      const { store } = own;
      const [text, other, gone] = ["a", "b", "c"].map((one) => `pawl_${one.repeat(43)}`) as [
        string,
        string,
        string,
      ];
      for (const one of [text, other]) await store.putPart("__tokens__", sha256(one), JSON.stringify(ANN));
      await store.putPart("__tokens__", sha256(gone), JSON.stringify({ revoked: true }));
      expect(await findToken(store, text)).toBeUndefined();
      expect(await moveFormerTokens(store)).toHaveLength(2);
      expect(await findToken(store, text)).toEqual(await known(text));
      expect(await listedHashes(store)).toHaveLength(2);
      expect(await findToken(store, gone)).toBeUndefined();
      expect(await revokeToken(store, text)).toEqual(await known(text));
      // Put there again, it is no token: it was revoked.
      await store.putPart("__tokens__", sha256(text), JSON.stringify(ANN));
      expect(await moveFormerTokens(store)).toEqual([]);
      expect([await findToken(store, text), await revokeToken(store, text)]).toEqual([undefined, undefined]);
      expect(await findToken(store, other)).toEqual(await known(other));
    });
  });
});
