import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { serve } from "../../shared/runner/serve.ts";
import { makeSettings } from "../../shared/settings/settings.ts";
import { AGENT, agentOf, bench } from "../support/bench.ts";
import { namesOf, reconciled } from "../support/reconciling.ts";
import { testNats, wired } from "../support/servers/stores.ts";

const never = new AbortController().signal;
const agent = agentOf(({ input }) => input);

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test("tasks of before agents had buckets of their own are read and finished where they are, beside new ones", async () => {
  await using b = await bench(nats, "nats-kv", agent);
  for (const id of ["done", "waits", "later"])
    await b.submit({ id }, { id, ...(id === "later" && { at: Date.now() + 500 }) });
  await serve(b.deps, { name: AGENT, agent, mode: "once", stop: never });
  const before = await b.deps.store.position();
  const { settings, ...rest } = b.world.config;
  await using now = await wired({ ...rest, settings: makeSettings({ ...settings, isolation: "documents" }) });
  const deps = { ...now, lanesOf: () => 1 };
  await submit(deps, { agent: AGENT, lanes: 1, id: "new", input: { id: "new" } });
  // The id is taken, by the same work.
  expect(await submit(deps, { agent: AGENT, lanes: 1, id: "done", input: { id: "done" } })).toMatchObject({
    kind: "already",
  });
  await expect(submit(deps, { agent: AGENT, lanes: 1, id: "waits", input: { id: "other" } })).rejects.toThrow(
    "another input",
  );
  await expect(submit(deps, { agent: "another", lanes: 1, id: "new", input: { id: "new" } })).rejects.toThrow(
    `agent ${AGENT}`,
  );
  await new Promise((resolve) => setTimeout(resolve, 600));
  await dispatchDue(deps, AGENT, never);
  expect(await deps.store.left?.(10)).toBe(2);
  expect(await serve(deps, { name: AGENT, agent, mode: "drain", stop: never })).toEqual({ completed: 3 });
  expect(await deps.store.left?.(10)).toBe(0);
  const { tasks } = await deps.store.list({}, 10);
  expect(tasks.map(({ id, state }) => `${id} ${state}`).sort()).toEqual(
    ["done", "later", "new", "waits"].map((id) => `${id} completed`),
  );
  // Two pages of two, the last written first, from both buckets.
  const first = await deps.store.list({}, 2);
  const second = await deps.store.list({}, 2, first.cursor);
  expect([...first.tasks, ...second.tasks].map(({ id }) => id)).toEqual(tasks.map(({ id }) => id));
  // Who has a place of before goes on from it.
  const changes = await deps.store.changes(before.cursor, 10);
  expect(changes.documents.map(({ key }) => key).sort()).toEqual(["done", "later", "new", "waits"]);
  expect((await deps.store.changes(changes.cursor, 10)).documents).toEqual([]);
  // Those of before are where they were: a function that was not deployed anew reads them.
  expect((await b.deps.store.get("waits"))?.task.state).toBe("completed");
  expect(await b.deps.store.get("new")).toBeUndefined();
  expect(namesOf(await reconciled(now))).toEqual([]);
});

test("where agents are kept apart, a message under another's task is a dead letter, and that task hears nothing of it", async () => {
  await using b = await bench(nats, "nats-kv", agent, { isolation: "documents" });
  await b.submit({}, { id: "mine" });
  const other = { ...b.queue, agent: "other" };
  await b.deps.bus.ensure(other);
  const data = new TextEncoder().encode('{"v":1,"input":{}}');
  await b.deps.bus.publish(other, { taskId: "mine", data, msgId: "m", headers: {} });
  expect(await serve(b.deps, { name: "other", agent, mode: "drain", stop: never })).toEqual({ surplus: 1 });
  expect(await b.task("mine")).toMatchObject({ state: "dispatched", agent: AGENT, settled: [] });
  expect((await b.deps.store.list({ agent: "other" }, 10)).tasks).toMatchObject([
    { state: "failed", error: { code: "id_conflict" } },
  ]);
  expect(await b.drain()).toEqual({ completed: 1 });
  expect(namesOf(await reconciled(b.deps)).filter((one) => !one.startsWith("dead_letter"))).toEqual([]);
});

test("going back and forth between one bucket and several, places in them are taken for what they are", async () => {
  await using b = await bench(nats, "nats-kv", agent);
  for (const id of ["one", "two"]) await b.submit({ id }, { id });
  const first = await b.deps.store.list({}, 1);
  const { settings, ...rest } = b.world.config;
  await using now = await wired({ ...rest, settings: makeSettings({ ...settings, isolation: "documents" }) });
  await submit({ ...now, lanesOf: () => 1 }, { agent: AGENT, lanes: 1, id: "new", input: {} });
  const { tasks } = await now.store.list({}, 10, first.cursor);
  expect(tasks.map(({ id }) => id)).toEqual(["new", "one"]);
  const { cursor } = await now.store.position();
  expect(cursor).toContain("{");
  expect((await b.deps.store.changes(cursor, 10)).documents).toEqual([]);
  await b.submit({ id: "three" }, { id: "three" });
  const [three] = (await b.deps.store.changes(cursor, 10)).documents;
  expect(three).toMatchObject({ key: "three" });
  // Without a place in this one, all of it is new.
  const elsewhere = JSON.stringify({ [AGENT]: "1.x" });
  expect((await b.deps.store.changes(elsewhere, 10)).documents).toHaveLength(3);
  for (const wrong of ["{", '{"-":"x"}'])
    await expect(b.deps.store.changes(wrong, 10)).rejects.toMatchObject({ code: "input_invalid" });
  await now.store.expire(Date.now(), 10);
  expect(namesOf(await reconciled(now))).toEqual([]);
  expect(namesOf(await reconciled(b.deps))).toEqual(["vanished new"]);
});
