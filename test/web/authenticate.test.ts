import { randomBytes } from "node:crypto";
import { beforeEach, expect, test } from "vitest";
import type { Deps } from "../../shared/ports/deps.ts";
import { memoryStore } from "../../shared/testing/memory-store.ts";
import { sha256 } from "../../shared/values/json.ts";
import { authenticator } from "../../shared/web/authenticate.ts";
import { lastUse, listedHashes, USE_EVERY } from "../../shared/web/token-list.ts";
import { createToken, findToken, revokeToken } from "../../shared/web/tokens.ts";
import { counting } from "../support/http/pages.ts";

const guess = () => `pawl_${randomBytes(32).toString("base64url")}`;
const ANN = { owner: "ann", scopes: ["read"], createdAt: 0 } as const;

let now: number;
beforeEach(() => {
  now = 1_000_000;
});

/** Who asks, of one instance, with a store that counts its reads of tokens. */
function door(store = memoryStore()) {
  const counted = counting(store);
  const authenticate = authenticator(() => now);
  const deps = { store: counted.store, clock: { now: () => now } } as unknown as Deps;
  const kept: Promise<unknown>[] = [];
  const ask = (text: string, from = "198.51.100.1", rateLimit = 8) =>
    authenticate(text, {
      open: async () => deps,
      log: () => {},
      rateLimit,
      from,
      keep: (until) => void kept.push(until),
    });
  const reads = () => counted.asked.filter((name) => name === "getRecord").length;
  const kind = async (text: string, from?: string, rate?: number) => (await ask(text, from, rate)).kind;
  return { ask, kind, reads, store, kept };
}

test("what nobody knows is looked up once, and what is over the limit not at all", async () => {
  const { kind, reads } = door();
  const unknown = guess();
  expect([await kind(unknown), await kind(unknown)]).toEqual(["refused", "refused"]);
  expect(reads()).toBe(1);
  // Two of eight a minute at once: the address has used them up.
  for (let i = 0; i < 100; i++) expect(await kind(guess())).toBe("slower");
  expect(await kind(unknown)).toBe("slower");
  expect(reads()).toBe(1);
  // It is asked for again when its refusal is old, and others are as they come in by the minute.
  now += 61_000;
  expect(await kind(unknown)).toBe("refused");
  expect(reads()).toBe(2);
});

test("guesses from everywhere cost a few look-ups, however many addresses they come from", async () => {
  const { kind, reads } = door();
  for (let i = 0; i < 500; i++) await kind(guess(), `2001:db8::${i}`);
  expect(reads()).toBe(8);
});

test("who has shown a valid token is not held up by guesses, and one made a moment ago works at once", async () => {
  const { kind, store } = door();
  const [old, other] = [await createToken(store, ANN), await createToken(store, { ...ANN, owner: "bob" })];
  expect(await kind(old)).toBe("authenticated");
  for (let i = 0; i < 50; i++) await kind(guess());
  expect(await kind(old)).toBe("authenticated");
  expect(await kind(other, "203.0.113.9")).toBe("authenticated");
  expect(await kind(await createToken(store, ANN), "203.0.113.9")).toBe("authenticated");
});

test("valid tokens take nothing of what strangers may ask, and each has its own limit", async () => {
  const { kind, store } = door();
  for (let i = 0; i < 40; i++) expect(await kind(await createToken(store, ANN))).toBe("authenticated");
  const busy = await createToken(store, ANN);
  expect([await kind(busy), await kind(busy), await kind(busy)]).toEqual([
    "authenticated",
    "authenticated",
    "slower",
  ]);
  expect(await kind(guess())).toBe("refused");
});

test("a token that is revoked is refused at once, and one that has expired is told so", async () => {
  const { ask, kind, store } = door();
  const text = await createToken(store, { ...ANN, expiresAt: now + 1_000 });
  const other = await createToken(store, ANN);
  expect([await kind(text), await kind(other)]).toEqual(["authenticated", "authenticated"]);
  now += 1_000;
  expect(await ask(text)).toEqual({ kind: "expired", at: now });
  await revokeToken(store, other);
  expect(await kind(other)).toBe("refused");
});

test("a stream's token is looked up every few seconds, however many streams it has", async () => {
  const { ask, reads, store } = door();
  const text = await createToken(store, ANN);
  const entered = await ask(text, undefined, 600);
  if (entered.kind !== "authenticated") throw new Error(entered.kind);
  const before = reads();
  const all = () => Promise.all(Array.from({ length: 20 }, () => entered.isStillValid()));
  expect(new Set(await all())).toEqual(new Set([true]));
  expect(reads() - before).toBe(1);
  await revokeToken(store, text);
  now += 2_500;
  await entered.isStillValid();
  expect(new Set(await all())).toEqual(new Set([false]));
});

test("its last use is written beside the request, every few minutes, and lists tokens of earlier versions", async () => {
  const { ask, store, kept } = door();
  const text = `pawl_${"a".repeat(43)}`;
  const hash = sha256(text);
  // Made by a version that had no list.
  await store.putRecord(`token-${hash}`, JSON.stringify(ANN));
  expect(await listedHashes(store)).toEqual([]);
  const used = now;
  for (let i = 0; i < 3; i++) expect((await ask(text, undefined, 600)).kind).toBe("authenticated");
  await Promise.all(kept);
  expect(kept).toHaveLength(1);
  const { id } = (await findToken(store, text)) as { id: string };
  expect([await lastUse(store, id), await listedHashes(store)]).toEqual([used, [hash]]);
  now += USE_EVERY;
  await ask(text, undefined, 600);
  await Promise.all(kept);
  expect([kept.length, await lastUse(store, id)]).toEqual([2, now]);
  await revokeToken(store, id);
  expect([await lastUse(store, id), await listedHashes(store)]).toEqual([undefined, []]);
});
