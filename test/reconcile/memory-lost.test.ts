import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { signal } from "../../shared/dispatch/operate.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { LIST, lastReconciled, readReportList, tidyReports } from "../../shared/reconcile/books/reports.ts";
import { paceOf } from "../../shared/reconcile/pace.ts";
import type { Plan } from "../../shared/reconcile/plan.ts";
import { account } from "../../shared/reconcile/walk.ts";
import { streamName } from "../../shared/task/names.ts";
import { AGENT, agentOf, bench } from "../support/bench.ts";
import { ahead, namesOf, reconciled } from "../support/reconciling.ts";
import { raw } from "../support/servers/raw.ts";
import { testNats } from "../support/servers/stores.ts";

// What follows when a reconciliation's memory is lost or changed together with something else, or for the report after.

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** A task that is done, and whose document is put back as its submit wrote it, while the list of reports is gone. */
async function putBack(ran: string[]) {
  const b = await bench(
    nats,
    "nats-kv",
    agentOf(({ id }) => void ran.push(id)),
  );
  await b.submit({}, { id: "t" });
  const submitted = await b.task("t");
  await b.drain();
  ahead(b, 600_000);
  expect(namesOf(await reconciled(b.deps))).toEqual([]);
  ahead(b, 1_200_000);
  const past = await raw(b.deps, undefined);
  await past.putDocument("t", submitted);
  await past.removeRecord(LIST);
  return b;
}

describe("without the list of reports, of which there is a copy, finished work is not started again", () => {
  test("by a repair", async () => {
    const ran: string[] = [];
    await using b = await putBack(ran);
    const names = namesOf(await reconciled(b.deps, { repair: true }));
    expect(names).toEqual(["books_altered list of reports", "rolled_back t"]);
    await b.drain();
    expect(ran).toEqual(["t"]);
  });

  test("by a sweep", async () => {
    const ran: string[] = [];
    await using b = await putBack(ran);
    expect(await dispatchDue(b.deps, AGENT)).toBe(0);
    await b.drain();
    expect(ran).toEqual(["t"]);
  });
});

test("a task in a part that was lost of those left open is known to the next report", async () => {
  const waiter = agentOf(async ({ waitFor }) => {
    await waitFor("one");
    await waitFor("two");
  });
  await using b = await bench(nats, "nats-kv", waiter);
  await b.submit({}, { id: "t" });
  await b.drain();
  ahead(b, 600_000);
  expect(namesOf(await reconciled(b.deps))).toEqual([]);
  const [part] = (await readReportList(b.deps.store)).open?.parts ?? [];
  await b.deps.store.removeTexts((name) => name === part);
  ahead(b, 1_200_000);
  const { report } = await reconciled(b.deps);
  expect(report.live).toEqual({ [AGENT]: { waiting: 1 } });
  expect((await readReportList(b.deps.store)).open?.count).toBe(1);
  await signal(b.deps, "t", "one", true);
  await b.drain();
  ahead(b, 1_800_000);
  // Said by the report before, of the same week; and nothing besides.
  expect(namesOf(await reconciled(b.deps))).toEqual(["books_altered open tasks 1"]);
});

describe("what a reconciliation that was cut off left behind", () => {
  const PROGRESS = "reconcile-progress";
  const echo = agentOf(({ input }) => input);

  test("is begun anew where it is the plan of nobody", async () => {
    await using b = await bench(nats, "nats-kv", echo);
    await b.submit({}, { id: "t" });
    await b.drain();
    const plan = { position: "1", at: Date.now() + 86_400_000 };
    const text = JSON.stringify({ place: { stage: "documents" }, touched: 1, plan });
    await b.deps.store.putRecord(PROGRESS, text);
    ahead(b, 600_000);
    expect(namesOf(await reconciled(b.deps))).toEqual([`unreadable record ${PROGRESS}`]);
  });

  test("hides no lost sequence where somebody set its plan forward", async () => {
    await using b = await bench(nats, "nats-kv", echo);
    await b.submit({}, { id: "t" });
    await b.drain();
    await (await raw(b.deps, undefined)).removeTask("t");
    ahead(b, 600_000);
    const stop = new AbortController();
    stop.abort();
    expect(await account(paceOf(b.deps, stop.signal))).toBeUndefined();
    const there = await b.deps.store.getRecord(PROGRESS);
    const { kept: _, ...left } = JSON.parse(there?.text ?? "") as { kept: unknown; plan: Plan };
    const queues = left.plan.queues.map((one) => ({
      ...one,
      before: { createdAt: one.info.createdAt, consumerCreatedAt: 0, upTo: 1, open: [] },
    }));
    const rest = { ...left, plan: { ...left.plan, queues } };
    await b.deps.store.putRecord(PROGRESS, JSON.stringify(rest), there?.revision);
    const names = namesOf(await reconciled(b.deps));
    expect(names).toEqual([`unexplained ${streamName(b.queue)}#1`, `unreadable record ${PROGRESS}`]);
  });
});

test("a slow reconciliation that tidies up behind a newer one does not set back what that one said of itself", async () => {
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(() => 1),
  );
  await reconciled(b.deps);
  const slow = await readReportList(b.deps.store);
  ahead(b, 600_000);
  await reconciled(b.deps);
  const newest = await lastReconciled(b.deps.store);
  await tidyReports(b.deps.store, slow, slow);
  expect(await lastReconciled(b.deps.store)).toEqual(newest);
  ahead(b, 1_200_000);
  expect(namesOf(await reconciled(b.deps))).toEqual([]);
});
