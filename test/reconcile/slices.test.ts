import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { StoreKind } from "../../functions/wiring/config.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { readReportList } from "../../shared/reconcile/books/reports.ts";
import { total } from "../../shared/reconcile/figures/tally.ts";
import { writers } from "../../shared/reconcile/page/writers.ts";
import { reconcile } from "../../shared/reconcile/reconcile.ts";
import type { Task } from "../../shared/task/document.ts";
import { streamName } from "../../shared/task/names.ts";
import { agentOf, type Bench, bench } from "../support/bench.ts";
import { ahead, inSlices, namesOf, patched, putProgress, reconciled } from "../support/reconciling.ts";
import { hasEmulator, testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const HOUR = 3_600_000;
const kinds = [
  { kind: "nats-kv" as const, here: true },
  { kind: "firestore-rest" as const, here: hasEmulator },
];
/** One step, so that each has a journal to be read. */
const stepper = agentOf(async ({ input, step, approval }) => {
  if ((input as { waits?: boolean }).waits) await approval("go");
  return step("s", () => 1);
});

const record = async (b: Bench, name: string) => (await b.deps.store.getRecord(name))?.text ?? "";
const putRecord = async (b: Bench, name: string, text: string) => {
  const { store } = b.deps;
  expect(await store.putRecord(name, text, (await store.getRecord(name))?.revision)).toMatchObject({
    kind: "written",
  });
};
const OTHER = "other";

/** A second period in which every stage has something to do. */
async function busyWeek(kind: StoreKind): Promise<Bench> {
  const b = await bench(nats, kind, stepper);
  ahead(b, -5 * HOUR);
  await b.submit({ waits: true }, { id: "old" });
  await b.drain();
  // Settled in the first period, and its message is still there: an ack that was lost.
  const other = { ...b.queue, agent: OTHER };
  await b.deps.bus.ensure(other);
  await submit(b.deps, { agent: OTHER, lanes: 1, id: "lag", input: {} });
  const found = await b.deps.store.get("lag");
  const settled = [
    { queue: streamName(other), seq: 1, dispatch: 1, outcome: "completed", at: Date.now() } as const,
  ];
  const task = {
    ...found?.task,
    state: "completed",
    updatedAt: Date.now(),
    result: 1,
    expiresAt: Date.now() + 1e10,
    settled,
    executions: 1,
    fence: 1,
  };
  await b.deps.store.replace(task as Task, found?.revision ?? "");
  ahead(b, 0);
  await reconciled(b.deps);
  for (let i = 0; i < 9; i++) await b.submit({ i }, { id: `t${i}` });
  await b.drain();
  // A message that somebody deleted: nothing explains it.
  await b.submit({}, { id: "gone" });
  await (await jetstreamManager(b.deps.nc)).streams.deleteMessage(streamName(b.queue), 11);
  ahead(b, HOUR / 2);
  return b;
}

describe.each(kinds)("in slices, $kind", ({ kind, here }) => {
  test.skipIf(!here)("no slice does what an earlier one did, and the report is that of one run", async () => {
    await using b = await busyWeek(kind);
    const { store, bus, log } = b.deps;
    const heads: string[] = [];
    const places: string[] = [];
    let reads = 0;
    const counted = <T extends unknown[], R>(work: (...args: T) => R) => {
      return (...args: T) => {
        reads++;
        return work(...args);
      };
    };
    patched(b, {
      pageSize: 4,
      // The former report is needed once more below.
      removeTexts: async () => {},
      changes: counted(store.changes),
      getMany: counted(store.getMany),
      getPart: counted(store.getPart),
      getText: counted(store.getText),
      getRecord: counted(store.getRecord),
      get: counted(store.get),
      getHead: counted((id: string) => {
        heads.push(id);
        return store.getHead(id);
      }),
    });
    Object.assign(b.deps, {
      log: (...[level, event, fields]: Parameters<typeof log>) => {
        if (event === "reconcile.resumed") places.push(JSON.stringify(fields));
        log(level, event, fields);
      },
    });
    const before = { reports: await record(b, "reports"), reconciled: await record(b, "reconciled") };
    const most: number[] = [];
    let plan = "";
    const done = await inSlices(b.deps, 8, async (slice) => {
      most.push(reads);
      reads = 0;
      if (slice === 1) plan = await record(b, "reconcile-progress");
    });
    expect(namesOf(done).sort()).toEqual([
      `ack_lag ${streamName({ ...b.queue, agent: OTHER })}#1`,
      "orphan gone",
      `unexplained ${streamName(b.queue)}#11`,
    ]);
    // Every slice has begun where no other one had, and no stage was entered twice.
    expect(places.length).toBeGreaterThan(5);
    expect(new Set(places).size).toBe(places.length);
    const stages = places.map((place) => (JSON.parse(place) as { stage: string }).stage);
    expect(stages.filter((stage, i) => stage !== stages[i - 1])).toEqual([...new Set(stages)]);
    expect(heads.sort()).toEqual(["gone", ...Array.from({ length: 9 }, (_, i) => `t${i}`)].sort());
    expect(Math.max(...most)).toBeLessThan(8 + 10);

    // The same plan once more, in one go.
    for (const [name, text] of Object.entries(before)) await putRecord(b, name, text);
    const { kept: _, place: __, ...rest } = JSON.parse(plan) as Record<string, unknown>;
    await putProgress(b.deps, { ...rest, place: { stage: "books" } });
    Object.assign(b.deps, { store, bus });
    const whole = await reconciled(b.deps);
    expect({ ...done.report, writtenAt: 0 }).toEqual({ ...whole.report, writtenAt: 0 });
  });

  test.skipIf(!here)(
    "a document that changes between them is neither left out nor counted twice",
    async () => {
      await using b = await bench(nats, kind, stepper);
      const ids = Array.from({ length: 12 }, (_, i) => `t${i}`);
      for (const id of ids) await b.submit({}, { id });
      await b.drain();
      for (const id of ["q0", "q1", "q2", "q3"]) await b.submit({}, { id });
      await b.submit({ waits: true }, { id: "w" });
      patched(b, { pageSize: 4 });
      const done = await inSlices(b.deps, 8, async (slice) => {
        // Oldest first: they move from what is still to be read to what was read, and the other way round.
        await b.submit({}, { id: ids[(slice * 5) % ids.length] as string });
        await b.submit({}, { id: ids[slice % ids.length] as string });
        if (slice === 2) await b.drain();
      });
      expect(namesOf(done)).toEqual([]);
      expect(done.report.documents).toBe(17);
      expect(total(done.report.agents)).toMatchObject({ created: 17 });
      expect(total(done.report.agents).classes).toMatchObject({ unexplained: 0 });
      // What it saw of them half done, the next one sees the rest of.
      await b.drain();
      const { report } = await reconciled(b.deps);
      expect(total(report.agents)).toMatchObject({ created: 17, completed: 16, executions: 17 });
    },
  );
});

test("a walk over a stream is cut in its middle, goes on from there, and finds every message once", async () => {
  await using b = await bench(nats, "nats-kv", stepper);
  const published = Array.from({ length: 1_300 }, (_, i) =>
    b.deps.bus.publish(b.queue, {
      taskId: `t${i}`,
      data: new TextEncoder().encode('{"v":1,"input":{}}'),
      msgId: `m${i}`,
      headers: {},
    }),
  );
  await Promise.all(published);
  const jsm = await jetstreamManager(b.deps.nc);
  // Holes of all sizes.
  for (const seq of [1, 7, 8, 400, ...Array.from({ length: 60 }, (_, i) => 700 + i)])
    await jsm.streams.deleteMessage(streamName(b.queue), seq);
  const all = (await b.deps.bus.survivors(b.queue, 1, 5_000)).map(({ seq }) => seq);
  expect(all).toHaveLength(1_300 - 64);
  expect(all).toEqual([...new Set(all)].sort((x, y) => x - y));
  expect(await b.deps.bus.survivors(b.queue, 390, 3)).toMatchObject([390, 391, 392].map((seq) => ({ seq })));

  const from: number[] = [];
  const { survivors } = b.deps.bus;
  let stop = new AbortController();
  Object.assign(b.deps.bus, {
    survivors: (...args: Parameters<typeof survivors>) => {
      from.push(args[1]);
      stop.abort();
      return survivors(...args);
    },
  });
  const slice = () => {
    stop = new AbortController();
    return reconcile(b.deps, stop.signal, { repair: false, writers });
  };
  while (!(await slice())) expect(from.length).toBeLessThan(10);
  expect(from).toHaveLength(3);
  expect(new Set(from).size).toBe(3);
  const { report } = await reconciled(b.deps);
  expect(total(report.agents).classes).toMatchObject({ queued: 1_300 - 64, unexplained: 64 });
});

test("one that was cut off long ago is finished as of then, and the rest is explained right after it", async () => {
  await using b = await bench(nats, "nats-kv", stepper);
  const stop = new AbortController();
  await b.submit({}, { id: "a" });
  await b.drain();
  stop.abort();
  expect(await reconcile(b.deps, stop.signal, { repair: false, writers })).toBeUndefined();
  await b.submit({}, { id: "b" });
  await b.drain();
  ahead(b, 8 * 24 * HOUR);
  const done = await reconciled(b.deps);
  const { past, at } = await readReportList(b.deps.store);
  expect(past).toMatchObject([
    { upTo: { [streamName(b.queue)]: 1 } },
    { upTo: { [streamName(b.queue)]: 2 } },
  ]);
  expect(past?.[0]?.at).toBeLessThan(Date.now());
  expect(at).toBe(done.report.span.to);
  expect(at).toBeGreaterThan(Date.now() + 7 * 24 * HOUR);
  expect(done.listed.ok).toBe(true);
});

test("of two functions at once one goes on, and the other does not call itself", async () => {
  await using b = await bench(nats, "nats-kv", stepper);
  for (let i = 0; i < 6; i++) await b.submit({}, { id: `t${i}` });
  await b.drain();
  const { store } = b.deps;
  let goesOn = 0;
  const slice = { mostCalls: 25, goOn: () => void goesOn++ };
  const options = { repair: false, writers, slice };
  // Another one takes over while this one reads.
  let isOther = false;
  patched(b, {
    changes: async (...args) => {
      if (!isOther) {
        isOther = true;
        await reconcile({ ...b.deps, store }, AbortSignal.abort(), options);
        expect(goesOn).toBe(1);
      }
      return store.changes(...args);
    },
  });
  expect(await reconcile(b.deps, AbortSignal.timeout(60_000), { ...options, saveEvery: 1 })).toBeUndefined();
  expect(goesOn).toBe(1);
  expect(namesOf(await reconciled(b.deps))).toEqual([]);
});
