import { jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { total } from "../../shared/reconcile/figures/tally.ts";
import { paceOf } from "../../shared/reconcile/pace.ts";
import { writers } from "../../shared/reconcile/page/writers.ts";
import { reconcile } from "../../shared/reconcile/reconcile.ts";
import { account } from "../../shared/reconcile/walk.ts";
import { consumerName, streamName } from "../../shared/task/names.ts";
import { agentOf, bench } from "../support/bench.ts";
import { ahead, namesOf, putProgress, reconciled } from "../support/reconciling.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const echo = agentOf(() => "done");
const never = new AbortController().signal;

test("while a busy system goes on, nothing is unexplained, and nothing counts twice", async () => {
  await using b = await bench(nats, "nats-kv", echo);
  for (let i = 0; i < 40; i++) await b.submit({ i }, { id: `t${i}` });
  // All of it is worked off, and more comes, between the look at the streams and the last page of documents.
  let pages = 0;
  const { store } = b.deps;
  const changes: typeof store.changes = async (after) => {
    if (++pages <= 3) {
      await b.drain();
      for (let i = 0; i < 5; i++) await b.submit({}, { id: `new-${pages}-${i}` });
    }
    return store.changes(after, 10);
  };
  Object.assign(b.deps, { store: { ...store, changes } });
  const first = await reconciled(b.deps);
  expect(namesOf(first)).toEqual([]);
  expect(total(first.report.agents).created).toBeGreaterThanOrEqual(40);
  Object.assign(b.deps, { store });
  await b.drain();
  const second = await reconciled(b.deps);
  expect(namesOf(second)).toEqual([]);
  expect(total(second.report.agents)).toMatchObject({ created: 55, executions: 55, completed: 55 });
  expect(second.listed.verdict).toBe("All 55 sequences explained; nothing completed twice.");
});

test("a stream that was made anew keeps its messages, whatever documents settled under the same numbers", async () => {
  await using b = await bench(nats, "nats-kv", echo);
  for (const id of ["a", "b", "c"]) await b.submit({}, { id });
  await b.drain();
  await (await jetstreamManager(b.deps.nc)).streams.delete(streamName(b.queue));
  await b.deps.bus.ensure(b.queue);
  for (const id of ["x", "y"]) await b.submit({}, { id });
  ahead(b, 600_000);
  await reconciled(b.deps, { repair: true });
  expect((await b.deps.bus.inspect(b.queue)).messages).toBe(2);
  expect(await b.drain()).toEqual({ completed: 2 });
});

test("the same id with another input, and a message that is no task, are explained and no fault", async () => {
  await using b = await bench(nats, "nats-kv", echo);
  await b.submit({ n: 1 }, { id: "t" });
  await b.drain();
  const send = (data: string, msgId: string) =>
    b.deps.bus.publish(b.queue, { taskId: "t", data: new TextEncoder().encode(data), msgId, headers: {} });
  await send('{"v":1,"input":{"n":2}}', "m1");
  await b.drain();
  await send("nonsense", "m2");
  await b.drain();
  const done = await reconciled(b.deps);
  expect(namesOf(done)).toEqual([]);
  expect(total(done.report.agents).classes).toMatchObject({ conflict: 2, completed: 1, unexplained: 0 });
});

test("a reconciler that comes late neither moves the checkpoint back nor counts anything again", async () => {
  await using b = await bench(nats, "nats-kv", echo);
  await b.submit({}, { id: "a" });
  await b.drain();
  const stop = new AbortController();
  // One has its plan, and is held up; another one ends with the same plan, and a third makes the next report.
  const late = await account(paceOf(b.deps, never));
  expect(late?.documents).toBe(1);
  await reconciled(b.deps);
  await b.submit({}, { id: "b" });
  await b.drain();
  await reconciled(b.deps);
  const before = JSON.parse((await b.deps.store.getRecord("reports"))?.text ?? "") as { at: number };
  const progress = await b.deps.store.getRecord("reconcile-progress");
  const old = {
    ...(JSON.parse(progress?.text ?? "{}") as object),
    place: { stage: "live" },
    plan: late?.plan,
  };
  await putProgress(b.deps, old);
  const done = await reconcile(b.deps, stop.signal, { repair: true, writers });
  expect(total(done?.report.agents ?? {})).toMatchObject({ created: 2, completed: 2 });
  const after = JSON.parse((await b.deps.store.getRecord("reports"))?.text ?? "") as { at: number };
  expect(after.at).toBeGreaterThan(before.at);
});

test("what is broken is named, and does not stop the rest: a consumer, a stream, a page of a journal", async () => {
  const stepper = agentOf(async ({ step }) => {
    for (let i = 0; i < 60; i++) await step(`s${i}`, () => i);
  });
  await using b = await bench(nats, "nats-kv", stepper);
  await b.submit({}, { id: "t" });
  await b.drain();
  const { namespace } = b.world.config.settings;
  const bucket = await new Kvm(b.deps.nc).open(`${namespace}-tasks`);
  for await (const key of await bucket.keys("part.t.*")) await bucket.purge(key);
  for (const agent of ["second", "third"]) {
    await b.deps.bus.ensure({ ...b.queue, agent });
    await submit(b.deps, { agent, lanes: 1, id: agent, input: {} });
  }
  const jsm = await jetstreamManager(b.deps.nc);
  await jsm.consumers.delete(streamName({ ...b.queue, agent: "second" }), consumerName(b.queue));
  const first = await reconciled(b.deps);
  const second = streamName({ ...b.queue, agent: "second" });
  expect(namesOf(first).sort()).toEqual([`consumer_gone ${second}`, "journal_missing t"]);
  await jsm.streams.delete(streamName({ ...b.queue, agent: "third" }));
  ahead(b, 600_000);
  const next = await reconciled(b.deps);
  expect(namesOf(next)).toContain(`stream_gone ${streamName({ ...b.queue, agent: "third" })}`);
  expect(namesOf(next)).toContain("orphan third");
  expect(next.listed.ok).toBe(false);
});

test("a task that is submitted again fifty times after its end ended once", async () => {
  await using b = await bench(nats, "nats-kv", echo);
  await b.submit({}, { id: "t" });
  await b.drain();
  await reconciled(b.deps);
  for (let i = 0; i < 50; i++) await b.submit({}, { id: "t" });
  const done = await reconciled(b.deps);
  expect(total(done.report.agents)).toMatchObject({ created: 1, completed: 1, executions: 1 });
  expect(total(done.report.agents).duplicates.document).toBeGreaterThan(40);
});

test("two ids with the same 32 bits of a hash are two documents, and both are looked at", async () => {
  await using b = await bench(nats, "nats-kv", echo);
  // Equal by FNV-1a.
  for (const id of ["order-6jbtdj", "order-9snf2b"]) await b.submit({}, { id });
  await b.drain();
  const done = await reconciled(b.deps);
  expect(namesOf(done)).toEqual([]);
  expect(done.report.documents).toBe(2);
  expect(total(done.report.agents)).toMatchObject({ created: 2, completed: 2 });
});
