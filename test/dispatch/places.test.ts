import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import type { BucketStore } from "../../shared/adapters/kv/bucket-store.ts";
import { natsKv } from "../../shared/adapters/kv/nats-kv.ts";
import { separateStore } from "../../shared/adapters/kv/separate.ts";
import { submitted } from "../../shared/task/create.ts";
import { agentBucket } from "../../shared/task/names.ts";
import { owning, whatIsLeft } from "../support/servers/owned.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";

const DAY = 86_400_000;

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());
afterEach(() => void vi.restoreAllMocks());

/** The buckets of two agents and the one that they share, and stores made of them with something else in their place. */
async function buckets() {
  const { config } = world(nats, "nats-kv", { isolation: "documents" });
  const deps = await wired(config);
  const { settings } = config;
  const open = (agent: string) => natsKv(deps.nc, settings, { name: agentBucket(settings, agent), agent });
  const [shared, a, b] = await Promise.all([natsKv(deps.nc, settings), open("a"), open("b")]);
  const store = (given: { shared?: Partial<BucketStore>; a?: Partial<BucketStore> } = {}) => {
    const whole = { ...shared, ...given.shared };
    const opened: Record<string, BucketStore> = { a: { ...a, ...given.a }, b };
    const agents = async () => Object.keys(opened);
    const one = async (agent: string) => opened[agent] as BucketStore;
    return separateStore({ shared: whole, own: whole, agents, open: one }, settings.retention);
  };
  /** What was said until now counts as said over a minute ago. */
  const abandoned = async (): Promise<Partial<BucketStore>> => {
    const { last_seq: upTo } = (await shared.bucket.info("t")).state;
    const { writtenFrom } = shared.bucket;
    const earlier = async (what: string, seq: number) =>
      seq <= upTo ? Date.now() - 61_000 : writtenFrom(what, seq);
    return { bucket: { ...shared.bucket, writtenFrom: earlier } };
  };
  const close = () => deps[Symbol.asyncDispose]();
  return { deps, settings, shared, a, b, store, abandoned, [Symbol.asyncDispose]: close };
}

const taskOf = (id: string, agent: string) => {
  const mark = { at: Date.now(), stamp: crypto.randomUUID(), by: "test" };
  return submitted({ id, agent, lane: 0, input: {}, inputHash: "h", ...mark }, "Q");
};
const isThere = async (store: BucketStore, id: string) => (await store.get(id)) !== undefined;

test("an id that somebody said and left is one agent's, when two take it at once", async () => {
  await using t = await buckets();
  const ids = Array.from({ length: 20 }, (_, i) => `t${i}`);
  for (const id of ids) await t.shared.values.put("t", `where.${id}`, "a");
  const old = await t.abandoned();
  for (const id of ids) {
    const [one, other] = [t.store({ shared: old }), t.store({ shared: old })];
    await Promise.allSettled([one.create(taskOf(id, "a")), other.create(taskOf(id, "b"))]);
    expect([await isThere(t.a, id), await isThere(t.b, id)].filter(Boolean), id).toHaveLength(1);
  }
});

test("what was said long ago, and is used now, is not forgotten before its document is there", async () => {
  await using t = await buckets();
  await t.shared.values.put("t", "where.x", "a");
  const old = Date.now() + t.settings.retention + 50;
  await new Promise((resolve) => setTimeout(resolve, 100));
  const create: BucketStore["create"] = async (task) => {
    await t.store().expire(old, 100);
    return t.a.create(task);
  };
  expect(await t.store({ a: { create } }).create(taskOf("x", "a"))).toMatchObject({ kind: "written" });
  expect((await t.shared.values.get("t", "where.x"))?.text).toBe("a");
});

test("whoever was frozen between saying an id and writing its document has lost it", async () => {
  await using t = await buckets();
  const create: BucketStore["create"] = async (task) => {
    const other = t.store({ shared: await t.abandoned() });
    expect(await other.create(taskOf("x", "b"))).toMatchObject({ kind: "written" });
    const { now } = Date;
    vi.spyOn(Date, "now").mockImplementation(() => now() + 61_000);
    return t.a.create(task);
  };
  await expect(t.store({ a: { create } }).create(taskOf("x", "a"))).rejects.toMatchObject({
    code: "store_unavailable",
  });
  expect([await isThere(t.a, "x"), await isThere(t.b, "x")]).toEqual([false, true]);
});

test("whoever was slow and has it still keeps it, and nobody takes it who looked before", async () => {
  await using t = await buckets();
  const create: BucketStore["create"] = async (task) => {
    const created = await t.a.create(task);
    const { now } = Date;
    vi.spyOn(Date, "now").mockImplementation(() => now() + 61_000);
    return created;
  };
  const store = t.store({ a: { create } });
  expect(await store.create(taskOf("x", "a"))).toMatchObject({ kind: "written" });
  // Said anew, so a write that is guarded by the first is refused.
  expect(await t.shared.values.put("t", "where.x", "b", "1")).toEqual({ kind: "refused" });
});

test("what an agent writes into its bucket ends nobody's expiry", async () => {
  await using t = await buckets();
  for (const text of ["no json", "7", "null", '{"next":-1}', '{"next":1e300,"begun":"x"}']) {
    await owning(t.deps, "x");
    await t.a.putRecord("expiry", text, (await t.a.getRecord("expiry"))?.revision);
    expect(await t.store().expire(Date.now() + 91 * DAY, 100), text).toBe(1);
    expect(await whatIsLeft(t.deps, "x")).toBe("nothing");
  }
});

test("a bucket whose expiry fails keeps no other's from being done, and the failure is told", async () => {
  await using t = await buckets();
  const old = Date.now() + 91 * DAY;
  await t.shared.values.put("t", "where.gone", "b");
  const asked = vi.spyOn(t.b, "expire");
  const expire = async () => {
    throw new Error("of a");
  };
  await expect(t.store({ a: { expire } }).expire(old, 100)).rejects.toThrow("of a");
  expect(asked).toHaveBeenCalledOnce();
  expect(await t.shared.values.get("t", "where.gone")).toBeUndefined();
});

test("what is said of gone tasks is forgotten, also behind many that live", async () => {
  await using t = await buckets();
  const living = Array.from({ length: 501 }, (_, i) => `t${i}`);
  await Promise.all(
    living.flatMap((id) => [
      t.shared.values.put("t", `where.${id}`, "a"),
      t.a.values.put("t", `task.${id}`, "x"),
    ]),
  );
  await t.shared.values.put("t", "where.gone", "a");
  const old = Date.now() + 91 * DAY;
  for (let calls = 0; calls < 2; calls++) await t.store().expire(old, 100);
  expect(await t.shared.values.get("t", "where.gone")).toBeUndefined();
  expect((await t.shared.values.get("t", "where.t0"))?.text).toBe("a");
  // All of them were looked at: nothing is read again until tomorrow.
  const scan = vi.spyOn(t.shared.bucket, "scan");
  await t.store().expire(old, 100);
  const from = scan.mock.calls.flatMap(([, filters, range]) =>
    filters.includes("where.*") ? [range?.from ?? 1] : [],
  );
  expect(Math.min(9_999, ...from)).toBeGreaterThan(502);
});

test("an agent's store is as full as the fuller of its bucket and the shared one", async () => {
  await using t = await buckets();
  const fill = (bytes: number) => ({ usage: async () => ({ bytes, limit: 100 }) });
  expect(await t.store({ shared: fill(90), a: fill(10) }).usage?.("a")).toMatchObject({ bytes: 90 });
  expect(await t.store({ shared: fill(10), a: fill(80) }).usage?.("a")).toMatchObject({ bytes: 80 });
  expect(await t.store({ shared: fill(20), a: fill(80) }).usage?.("none")).toMatchObject({ bytes: 20 });
});

test("a task whose place is known is one read", async () => {
  await using t = await buckets();
  let reads = 0;
  const values: BucketStore["values"] = {
    ...t.a.values,
    get: async (...asked) => {
      reads++;
      return t.a.values.get(...asked);
    },
  };
  const get: BucketStore["get"] = async (id) => {
    reads++;
    return t.a.get(id);
  };
  const store = t.store({ a: { values, get } });
  await store.create(taskOf("x", "a"));
  reads = 0;
  expect((await store.get("x"))?.task).toMatchObject({ agent: "a" });
  expect(reads).toBe(1);
});

test("under an id that is said to be another's nothing is found, also while that one's document is not there", async () => {
  await using t = await buckets();
  await t.b.create(taskOf("x", "b"));
  const store = t.store();
  expect((await store.get("x"))?.task).toMatchObject({ agent: "b" });
  await t.shared.values.put("t", "where.x", "a");
  expect(await store.get("x")).toBeUndefined();
  expect(await store.getMany(["x"])).toEqual([undefined]);
  await t.a.create(taskOf("x", "a"));
  expect((await store.get("x"))?.task).toMatchObject({ agent: "a" });
});
