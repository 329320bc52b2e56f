import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { PER_PAGE } from "../../shared/audit/entry.ts";
import { listAudit } from "../../shared/audit/read.ts";
import { trimAudit } from "../../shared/audit/trim.ts";
import { verifyAudit } from "../../shared/audit/verify.ts";
import { PawlError } from "../../shared/errors/errors.ts";
import { memoryStore } from "../../shared/testing/memory-store.ts";
import { auditDeps } from "../support/audit.ts";
import { emptyStore, everyStore, testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const numbers = (entries: readonly { n: number }[]) => entries.map(({ n }) => n);
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

describe.each(everyStore)("$kind", ({ kind, here }) => {
  test.skipIf(!here)(
    "many who write at once each get a number, and pages are left as they are full",
    async () => {
      await using own = await emptyStore(nats, kind);
      const { deps, add } = auditDeps(own.store);
      const writers = Array.from({ length: 3 }, async (_, w) => {
        for (let i = 0; i < 18; i++) await add(`t-${w}-${i}`);
      });
      await Promise.all(writers);
      const { entries, cursor } = await listAudit(deps, {}, 1_000);
      expect([numbers(entries), cursor]).toEqual([upTo(54).reverse(), undefined]);
      expect(new Set(entries.map(({ task }) => task)).size).toBe(54);
      expect(await verifyAudit(deps)).toMatchObject({ problems: [], entries: 54, first: 1, last: 54 });
    },
  );
});

test("an entry whose answer was lost is not written twice, and one that can't be written is an error", async () => {
  const plain = memoryStore();
  let isAway = false;
  let lost = 1;
  const store = {
    ...plain,
    putRecord: async (...given: Parameters<typeof plain.putRecord>) => {
      if (isAway) throw new PawlError("store_unavailable", "away");
      const written = await plain.putRecord(...given);
      if (lost-- > 0) throw new PawlError("store_unavailable", "the answer was lost");
      return written;
    },
  };
  const { deps, add, time } = auditDeps(store);
  expect((await add("t")).n).toBe(1);
  expect(numbers((await listAudit(deps, {}, 10)).entries)).toEqual([1]);
  isAway = true;
  let passed = 0;
  Object.assign(deps.clock, { monotonic: () => (passed += 1_000) });
  await expect(add("u")).rejects.toMatchObject({ code: "store_unavailable" });
  expect(time.now).toBeGreaterThan(0);
});

test("whoever dies after any write of a full page leaves a trail that the next one goes on with", async () => {
  for (let dies = 1; dies <= 2; dies++) {
    const plain = memoryStore();
    const first = auditDeps(plain);
    await first.addMany(PER_PAGE);
    let writes = 0;
    const dying =
      <A extends unknown[], R>(write: (...given: A) => Promise<R>) =>
      async (...given: A): Promise<R> => {
        if (++writes === dies) throw new Error("died");
        return write(...given);
      };
    const { add } = auditDeps({ ...plain, putText: dying(plain.putText), putRecord: dying(plain.putRecord) });
    await expect(add("lost")).rejects.toThrow("died");
    await first.add("next");
    expect(await verifyAudit(first.deps)).toMatchObject({ problems: [], entries: PER_PAGE + 1 });
  }
});

test("lists by who, what, which and when, page by page, the newest first", async () => {
  const { deps, add, time } = auditDeps();
  const bob = { name: "bob@host", via: "cli" } as const;
  for (let i = 0; i < 120; i++) {
    time.now += 60_000;
    await add(`t-${i % 3}`, {
      ...(i % 2 && { actor: bob }),
      op: i % 4 ? "cancel" : "redrive",
      agent: `a${i % 5}`,
    });
  }
  const all = (await listAudit(deps, {}, 1_000)).entries;
  for (const filter of [
    { actor: "bob@host" },
    { actor: deps.actor.token as string },
    { task: "t-2" },
    { op: "redrive" },
    { agents: ["a1", "a4"] },
    { since: all[30]?.at as number, until: all[10]?.at as number },
    { task: "t-1", op: "cancel", actor: "ann" },
  ]) {
    const wanted = (await listAudit(deps, filter, 1_000)).entries;
    expect(wanted.length).toBeGreaterThan(5);
    expect(wanted.length).toBeLessThan(80);
    const paged = [];
    let cursor: string | undefined;
    do {
      const page = await listAudit(deps, filter, 7, cursor === undefined ? undefined : Number(cursor));
      expect(page.entries.length).toBeLessThanOrEqual(7);
      paged.push(...page.entries);
      cursor = page.cursor;
    } while (cursor !== undefined);
    expect(paged).toEqual(wanted);
  }
  expect((await listAudit(deps, { task: "nobody" }, 5)).entries).toEqual([]);
});

describe("verifying", () => {
  type Change = (store: ReturnType<typeof memoryStore>, born: number) => Promise<unknown>;
  const inTail =
    (change: (tail: { entries: { task?: string }[]; oldest: number }) => void): Change =>
    async (store) => {
      const { text, revision } = (await store.getRecord("audit")) as { text: string; revision: string };
      const tail = JSON.parse(text);
      change(tail);
      await store.putRecord("audit", JSON.stringify(tail), revision);
    };
  const inPage =
    (page: number, change: (held: { entries: object[] }) => void): Change =>
    async (store, born) => {
      const name = `audit-${born}-${page}`;
      const held = JSON.parse((await store.getText(name)) as string);
      change(held);
      await store.putText(name, JSON.stringify(held));
    };
  const changes: Record<string, Change> = {
    "an entry's task": inPage(1, ({ entries }) => Object.assign(entries[7] as object, { task: "other" })),
    "an entry's actor": inPage(2, ({ entries }) =>
      Object.assign(entries[0] as object, { actor: { name: "x" } }),
    ),
    "an entry taken out": inPage(1, ({ entries }) => void entries.splice(9, 1)),
    "the last entry of a page taken out": inPage(1, ({ entries }) => void entries.pop()),
    "two entries exchanged": inPage(2, ({ entries }) => void entries.unshift(...entries.splice(1, 1))),
    "a page removed": (store, born) => store.removeTexts((name) => name === `audit-${born}-2`),
    "a page put in place of another": async (store, born) =>
      store.putText(`audit-${born}-2`, (await store.getText(`audit-${born}-1`)) as string),
    "the newest entry taken out": inTail(({ entries }) => void entries.pop()),
    "a newest entry's task": inTail(({ entries }) => Object.assign(entries[0] as object, { task: "other" })),
    "where it begins": inTail((tail) => {
      tail.oldest = 2;
    }),
  };

  test.each(Object.entries(changes))("notices %s, with a key and without", async (_, change) => {
    for (const keys of [undefined, ["a-key-of-the-tests"]]) {
      const store = memoryStore();
      const { deps, addMany, time } = auditDeps(store, keys);
      const born = time.now;
      await addMany(2 * PER_PAGE + 5);
      expect((await verifyAudit(deps)).problems).toEqual([]);
      await change(store, born);
      expect((await verifyAudit(deps)).problems.length).toBeGreaterThan(0);
    }
  });

  test("what was sealed again by who has no key is noticed, and what was cut off by an anchor", async () => {
    const store = memoryStore();
    const ours = auditDeps(store, ["a-key-of-the-tests"]);
    await ours.addMany(3);
    const early = await store.getRecord("audit");
    await ours.addMany(3);
    const { anchor } = await verifyAudit(ours.deps);
    expect((await verifyAudit(ours.deps, anchor)).problems).toEqual([]);
    const now = await store.getRecord("audit");
    await store.putRecord("audit", early?.text as string, now?.revision);
    expect((await verifyAudit(ours.deps)).problems).toEqual([]);
    expect((await verifyAudit(ours.deps, anchor)).problems).toEqual([expect.stringMatching(/cut off/)]);
    await auditDeps(store).add("forged");
    expect((await verifyAudit(ours.deps)).problems).toContainEqual(
      expect.stringMatching(/key that PAWL_SEAL_KEY/),
    );
  });

  test("pages without their record are noticed; what is no trail is nothing that is written to", async () => {
    const { deps, store, add, addMany } = auditDeps();
    await addMany(PER_PAGE + 1);
    const there = await store.getRecord("audit");
    await store.putRecord("audit", "{}", there?.revision);
    await expect(add("t")).rejects.toMatchObject({ code: "audit_unreadable" });
    const gone = { ...deps, store: { ...store, getRecord: async () => undefined } };
    expect((await verifyAudit(gone)).problems).toEqual([expect.stringMatching(/is gone, and 1 pages/)]);
    expect(await verifyAudit(auditDeps().deps)).toEqual({ problems: [], entries: 0 });
  });
});

test("a page goes when its newest entry is older than the retention, and the rest is whole", async () => {
  const { deps, store, addMany, time } = auditDeps();
  const born = time.now;
  await addMany(PER_PAGE);
  time.now += 10 * 86_400_000;
  await addMany(PER_PAGE + 3);
  expect(await trimAudit(deps)).toBe(0);
  time.now += 356 * 86_400_000;
  expect(await trimAudit(deps)).toBe(1);
  expect(await store.getText(`audit-${born}-1`)).toBeUndefined();
  expect(await verifyAudit(deps)).toMatchObject({
    problems: [],
    first: PER_PAGE + 1,
    last: 2 * PER_PAGE + 3,
  });
  expect(numbers((await listAudit(deps, {}, 500)).entries).at(-1)).toBe(PER_PAGE + 1);
  // What is not full stays, however old it is.
  time.now += 500 * 86_400_000;
  expect([await trimAudit(deps), await trimAudit(deps)]).toEqual([1, 0]);
  expect(await verifyAudit(deps)).toMatchObject({ problems: [], entries: 3, first: 2 * PER_PAGE + 1 });
  await addMany(PER_PAGE);
  expect(await verifyAudit(deps)).toMatchObject({ problems: [], entries: PER_PAGE + 3 });
});
