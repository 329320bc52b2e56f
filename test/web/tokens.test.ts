import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { sha256 } from "../../shared/values/json.ts";
import { createToken, findToken, revokeToken, type Token } from "../../shared/web/tokens.ts";
import { emptyStore, everyStore, testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const ANN: Token = { owner: "ann", scopes: ["submit"], agents: ["echo"], createdAt: 7 };

describe.each(everyStore)("$kind", ({ kind, here }) => {
  describe.skipIf(!here)("tokens", () => {
    test("a token is known until it is revoked, and of many who revoke it one does", async () => {
      await using own = await emptyStore(nats, kind);
      const text = await createToken(own.store, ANN);
      const other = await createToken(own.store, { ...ANN, owner: "bob" });
      expect(await findToken(own.store, text)).toEqual(ANN);
      const revoked = await Promise.all(Array.from({ length: 8 }, () => revokeToken(own.store, text)));
      expect(revoked.filter(Boolean)).toHaveLength(1);
      expect(await findToken(own.store, text)).toBeUndefined();
      expect(await revokeToken(own.store, text)).toBe(false);
      expect(await findToken(own.store, other)).toMatchObject({ owner: "bob" });
    });

    test("a token of an earlier version is known, and can be revoked, there as here", async () => {
      await using own = await emptyStore(nats, kind);
      const { store } = own;
      const [text, other, gone] = ["a", "b", "c"].map((one) => `pawl_${one.repeat(43)}`) as [
        string,
        string,
        string,
      ];
      for (const one of [text, other])
        await store.putPart("__tokens__", await sha256(one), JSON.stringify(ANN));
      await store.putPart("__tokens__", await sha256(gone), JSON.stringify({ revoked: true }));
      expect(await findToken(store, text)).toEqual(ANN);
      expect(await findToken(store, gone)).toBeUndefined();
      expect([await revokeToken(store, text), await revokeToken(store, gone)]).toEqual([true, false]);
      expect([await findToken(store, text), await revokeToken(store, text)]).toEqual([undefined, false]);
      // A function that was not deployed anew yet looks there only.
      expect(await store.getPart("__tokens__", await sha256(text))).toBeUndefined();
      expect(await findToken(store, other)).toEqual(ANN);
    });
  });
});
