import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { listAudit } from "../../../shared/audit/read.ts";
import { cancel } from "../../../shared/dispatch/operate.ts";
import { PawlError } from "../../../shared/errors/errors.ts";
import type { TaskStore } from "../../../shared/ports/store.ts";
import type { Bindings } from "../../../shared/web/context.ts";
import { findToken } from "../../../shared/web/tokens.ts";
import { ALL } from "../../support/http/api.ts";
import { webStage } from "../../support/http/web.ts";
import { testNats } from "../../support/servers/stores.ts";
import { until } from "../../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const CANCEL = "/v1/tasks/cancel";
const REDRIVE = "/v1/dead-letters/redrive";
const fail = () => {
  throw new Error("The mail server is away");
};

async function stage(run?: () => unknown) {
  const s = await webStage(nats, "nats-kv", run);
  const boss = await s.token("boss", ALL);
  const post = (path: string, body: object, token = boss, env: Partial<Bindings> = {}) =>
    s.ask(path, { token, method: "POST", body, env });
  const states = async (...ids: string[]) => Promise.all(ids.map(async (id) => (await s.task(id)).state));
  const submitAll = async (owner: string, ...ids: string[]) => {
    for (const id of ids) await s.submit({}, { id, meta: { owner, labels: { of: owner } } });
  };
  /** The same servers, but for what a store does otherwise. */
  const otherwise = (change: (store: TaskStore) => Partial<TaskStore>): Partial<Bindings> => {
    const { store } = s.deps;
    const changed = new Proxy(store, {
      get: (target, name) => ({ ...target, ...change(store) })[name as keyof TaskStore],
    });
    return { open: async () => ({ ...s.deps, store: changed }) };
  };
  return Object.assign(s, { boss, post, states, submitAll, otherwise });
}

test("a dry run counts and changes nothing; then slices, of which one is repeated, do each task once", async () => {
  await using s = await stage();
  const anns = ["a1", "a2", "a3", "a4", "a5", "a6", "a7"];
  await s.submitAll("ann", ...anns);
  await s.submitAll("bob", "b1");
  await cancel(s.deps, "a7");
  const dry = await s.post(CANCEL, { label: "of=ann", dryRun: true });
  expect(dry).toMatchObject({ status: 200, json: { count: 6, skipped: [] } });
  expect(dry.json).not.toHaveProperty("cursor");
  expect((dry.json as { ids: string[] }).ids.toSorted()).toEqual(anns.slice(0, 6));
  expect(await s.states("a1", "a6")).toEqual(["dispatched", "dispatched"]);
  expect((await listAudit(s.deps, {}, 10)).entries).toEqual([]);

  const asked = dry.json?.until as number;
  await until("it is another millisecond", async () => s.deps.clock.now() > asked);
  await s.submitAll("ann", "late");
  const body = { label: "of=ann", until: asked, limit: 2 };
  const first = await s.post(CANCEL, body);
  expect(first.json).toMatchObject({ count: 2, skipped: [], until: asked, cursor: expect.any(String) });
  // Its answer was lost: the same again does others, and none twice.
  const again = await s.post(CANCEL, body);
  expect(again.json).toMatchObject({ count: 2, skipped: [] });
  const last = await s.post(CANCEL, { ...body, cursor: first.json?.cursor, limit: 50 });
  expect(last.json).toMatchObject({ count: 2, skipped: [] });
  expect(last.json).not.toHaveProperty("cursor");
  const done = [first, again, last].flatMap(({ json }) => json?.ids as string[]);
  expect(done.toSorted()).toEqual(anns.slice(0, 6));
  expect((await s.post(CANCEL, body)).json).toMatchObject({ count: 0, skipped: [] });
  expect(new Set(await s.states(...anns))).toEqual(new Set(["cancelled"]));
  expect(await s.states("b1", "late")).toEqual(["dispatched", "dispatched"]);

  // In the trail and in histories each is as if it had been asked for alone.
  const { entries } = await listAudit(s.deps, {}, 100);
  expect(entries.map(({ task, outcome }) => `${task} ${outcome}`).toSorted()).toEqual(
    anns.slice(0, 6).flatMap((id) => [`${id} asked`, `${id} done`]),
  );
  const token = (await findToken(s.deps.store, s.boss))?.id as string;
  expect(entries[0]).toMatchObject({ op: "cancel", actor: { name: "boss", token, via: "api" } });
  expect((await s.task("a1")).history.at(-1)?.by).toBe(`boss via api (${token})`);
});

test("nothing said of which is refused, unless it says all; none but these fields is taken", async () => {
  await using s = await stage();
  await s.submitAll("ann", "a");
  for (const path of [CANCEL, REDRIVE])
    for (const body of [
      {},
      { dryRun: true },
      { limit: 5, until: 9 },
      { all: false },
      { all: true, limit: 51 },
    ])
      expect((await s.post(path, body)).status, JSON.stringify([path, body])).toBe(422);
  expect((await s.post(CANCEL, { dryRun: true })).json?.detail).toContain(
    'The body is not valid. Say which: one of agent, state, owner, error, label, or "all": true',
  );
  expect((await s.post(REDRIVE, { state: "failed" })).json?.detail).toMatch(/state/);
  expect((await s.post(CANCEL, { all: true, cursor: "x" })).json?.detail).toContain(
    '"x" is not a valid cursor',
  );
  expect(await s.states("a")).toEqual(["dispatched"]);
  expect((await s.post(CANCEL, { all: true })).json).toMatchObject({ count: 1, ids: ["a"] });
});

test("nobody changes what is not theirs to see or to operate", async () => {
  await using s = await stage();
  await s.submitAll("ann", "a");
  await s.submitAll("bob", "b");
  const ann = await s.token("ann");
  const other = await s.token("otto", ALL, ["other"]);
  for (const path of [CANCEL, REDRIVE])
    expect((await s.post(path, { all: true, dryRun: true }, ann)).json?.code).toBe("scope_missing");
  for (const which of [{ all: true }, { agent: "tested" }, { owner: "ann" }])
    for (const dryRun of [true, false])
      expect((await s.post(CANCEL, { ...which, dryRun }, other)).json).toMatchObject({ count: 0, ids: [] });
  expect(await s.states("a", "b")).toEqual(["dispatched", "dispatched"]);
  expect((await s.post(CANCEL, { owner: "bob", state: "dispatched" })).json).toMatchObject({ ids: ["b"] });
  expect(await s.states("a", "b")).toEqual(["dispatched", "cancelled"]);
});

test("one that has moved on since it was listed is told of, and stops nothing", async () => {
  await using s = await stage(fail);
  await s.submitAll("ann", "a", "b", "c");
  const env = s.otherwise((store) => ({
    list: async (...asked) => {
      const page = await store.list(...asked);
      if (page.tasks.some(({ id, state }) => id === "b" && state === "dispatched")) await cancel(s.deps, "b");
      return page;
    },
  }));
  const answer = await s.post(CANCEL, { owner: "ann" }, s.boss, env);
  expect(answer.json).toMatchObject({
    count: 2,
    skipped: [{ id: "b", code: "illegal_transition", detail: "It is cancelled by now" }],
  });
  expect(await s.states("a", "b", "c")).toEqual(["cancelled", "cancelled", "cancelled"]);
});

test("where the store goes away in the middle, the same again goes on from there", async () => {
  await using s = await stage();
  await s.submitAll("ann", "a", "b", "c");
  const env = s.otherwise((store) => ({
    get: (id) =>
      id === "b" ? Promise.reject(new PawlError("store_unavailable", "The store is away")) : store.get(id),
  }));
  // The last changed first.
  const cut = await s.post(CANCEL, { all: true }, s.boss, env);
  expect([cut.status, cut.headers.get("retry-after")]).toEqual([503, "60"]);
  expect(await s.states("a", "b", "c")).toEqual(["dispatched", "dispatched", "cancelled"]);
  expect((await s.post(CANCEL, { all: true })).json).toMatchObject({ ids: ["b", "a"], skipped: [] });
});

test("dead letters are tried again once, also where they have failed again before a lost answer is repeated", async () => {
  await using s = await stage(fail);
  await s.submitAll("ann", "a", "b");
  await s.submitAll("bob", "c");
  await s.drain();
  const which = { error: "attempts_exhausted", owner: "ann" };
  // The runner's clock is a minute behind the API's.
  const ahead = { ...s.deps, clock: { ...s.deps.clock, now: () => s.deps.clock.now() + 60_000 } };
  const env = { open: async () => ahead };
  const dry = await s.post(REDRIVE, { ...which, dryRun: true }, s.boss, env);
  expect(dry.json).toMatchObject({ count: 2 });
  const body = { ...which, until: dry.json?.until };
  // Two at once, as where a first answer is late.
  const both = await Promise.all([1, 2].map(() => s.post(REDRIVE, body, s.boss, env)));
  expect(both.flatMap(({ json }) => json?.ids as string[]).toSorted()).toEqual(["a", "b"]);
  expect(await s.states("a", "b", "c")).toEqual(["dispatched", "dispatched", "failed"]);
  await s.drain();
  expect(await s.states("a", "b")).toEqual(["failed", "failed"]);
  expect((await s.post(REDRIVE, body, s.boss, env)).json).toMatchObject({ count: 0, skipped: [] });
  expect((await s.post(REDRIVE, { error: "fatal" })).json).toMatchObject({ count: 0 });
  const redriven = (await listAudit(s.deps, { op: "redrive" }, 100)).entries;
  expect(redriven.filter(({ outcome }) => outcome === "done")).toHaveLength(2);
  await until("the API's clock says later", async () => {
    return (await s.post(REDRIVE, which, s.boss, env)).json?.count === 2;
  });
});

test("each counts as a request of its own", async () => {
  await using s = await stage();
  const ids = Array.from({ length: 16 }, (_, i) => `t${i}`);
  await s.submitAll("ann", ...ids);
  const env = { rateLimit: 60 };
  expect((await s.post(CANCEL, { all: true, dryRun: true }, s.boss, env)).status).toBe(200);
  expect((await s.post(CANCEL, { all: true }, s.boss, env)).json).toMatchObject({ count: 16 });
  expect((await s.post(CANCEL, { all: true }, s.boss, env)).status).toBe(429);
});
