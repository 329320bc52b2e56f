import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { dispatch } from "../../../shared/dispatch/dispatch.ts";
import type { Notice } from "../../../shared/ports/notify.ts";
import { verdictOf } from "../../../shared/reconcile/figures/report.ts";
import { total } from "../../../shared/reconcile/figures/tally.ts";
import { lookBack } from "../../../shared/reconcile/reconcile.ts";
import type { Task } from "../../../shared/task/document.ts";
import { streamName } from "../../../shared/task/names.ts";
import { agentOf, bench } from "../../support/bench.ts";
import { ahead, namesOf, reconciled } from "../../support/reconciling.ts";
import { next } from "../../support/servers/bus.ts";
import { testNats } from "../../support/servers/stores.ts";
import { later } from "../../support/time/clocks.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test("an orphan is dispatched again, unless told not to; what was lost stays named, and is explained", async () => {
  let runs = 0;
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(() => ++runs),
  );
  await b.submit({}, { id: "t" });
  // Taken, handed back, and then its message is deleted: its document knows the sequence.
  const found = await b.deps.store.get("t");
  const task = { ...(found?.task as Task), seq: 1 } as Task;
  await b.deps.store.replace(task, found?.revision ?? "");
  await (await jetstreamManager(b.deps.nc)).streams.deleteMessage(streamName(b.queue), 1);
  ahead(b, 600_000);

  const looked = await reconciled(b.deps);
  expect(looked.report.repairs).toEqual({});
  expect(namesOf(looked)).toEqual([`unexplained ${streamName(b.queue)}#1`, "orphan t"]);
  expect(looked.listed).toMatchObject({
    ok: false,
    level: "broken",
    verdict:
      "1 of 1 sequences are NOT explained; nothing completed twice. " +
      "Broken: unexplained, 1 sequence (find out who deleted from the stream or the store). " +
      "To do: orphan, 1 task (see whether the dispatch function runs every minute).",
  });
  expect(looked.report.findings).not.toHaveProperty("mended");
  expect((await b.task("t")).dispatches).toBe(1);

  ahead(b, 1_200_000);
  const mended = await reconciled(b.deps, { repair: true });
  expect(mended.report.repairs).toEqual({ tasks_dispatched: 1 });
  expect(mended.report.findings).toMatchObject({
    mended: { orphan: 1 },
    named: [{ kind: "unexplained" }, { kind: "orphan", subject: "t", mended: true }],
  });
  expect(mended.listed.verdict).not.toMatch(/orphan/);
  expect(await b.task("t")).toMatchObject({ state: "dispatched", dispatches: 2 });
  expect((await b.task("t")).settled).toMatchObject([{ seq: 1, outcome: "lost" }]);
  expect(await b.drain()).toEqual({ completed: 1 });
  expect(runs).toBe(1);
});

test("a settled message whose ack was lost is deleted; the work is not done again", async () => {
  let runs = 0;
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(() => ++runs),
  );
  await b.submit({}, { id: "t" });
  const delivery = await next(b.deps, b.queue);
  const { handle } = await import("../../../shared/runner/handle.ts");
  const deaf = { ...delivery, ack: async () => {} };
  const agent = agentOf(() => ++runs);
  expect(
    await handle(b.deps, { delivery: deaf, queue: b.queue, agent, stop: new AbortController().signal }),
  ).toMatchObject({
    as: "completed",
  });
  ahead(b, 600_000);
  expect(namesOf(await reconciled(b.deps))).toEqual([`ack_lag ${streamName(b.queue)}#1`]);
  expect((await b.deps.bus.inspect(b.queue)).messages).toBe(1);
  // A week later it is still there, and now it may be mended.
  const mended = await reconciled(b.deps, { repair: true });
  expect(mended.report.repairs).toEqual({ acks_repeated: 1 });
  expect(mended.report.findings.named).toMatchObject([{ kind: "ack_lag", mended: true }]);
  expect((await b.deps.bus.inspect(b.queue)).messages).toBe(0);
  expect(await b.drain()).toEqual({});
  expect(runs).toBe(1);
  expect(total(mended.report.agents).classes).toMatchObject({ completed: 1, unexplained: 0 });
});

test("of many that are overdue, also those that are not named are known to be mended", async () => {
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(() => "done"),
  );
  for (let n = 0; n < 103; n++) await b.submit({}, { id: `t-${n}`, at: Date.now() + 60_000 });
  ahead(b, 3_600_000);
  expect((await reconciled(b.deps)).listed).toMatchObject({
    level: "look",
    ok: true,
    verdict: expect.stringContaining("To do: overdue, 103 tasks (see whether the dispatch function"),
  });
  const { report, listed } = await reconciled(b.deps, { repair: true });
  expect(report.findings).toMatchObject({ counts: { overdue: 103 }, mended: { overdue: 103 } });
  expect(report.findings.named.every((one) => one.mended)).toBe(true);
  expect(report.repairs).toEqual({ tasks_dispatched: 103 });
  expect(listed).toMatchObject({ level: "ok" });
});

test("a stuck task that another dispatcher was faster with counts as mended; one that stays stuck does not", async () => {
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(() => "done"),
  );
  for (const id of ["fast", "stuck"]) await b.submit({}, { id, at: Date.now() + 60_000 });
  const deps = later(b.deps, 3_600_000);
  const { store } = deps;
  // The sweep finds neither of them. Just before, another one dispatches the first.
  const due: typeof store.due = async () => {
    const fast = await store.get("fast");
    if (fast?.task.state === "scheduled") await dispatch(deps, fast, { ms: 0, retryIn: 60_000 });
    return { tasks: [], isCut: false };
  };
  const { report, listed } = await reconciled({ ...deps, store: { ...store, due } }, { repair: true });
  expect(report.findings).toMatchObject({
    counts: { overdue: 2 },
    mended: { overdue: 1 },
    named: [{ subject: "fast", mended: true }, { subject: "stuck" }],
  });
  expect(report.repairs).toEqual({});
  expect(listed).toMatchObject({
    level: "look",
    verdict: expect.stringMatching(/To do: overdue, 1 task \(/),
  });
});

test("an earlier period can be looked at again, and nothing is kept of that", async () => {
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(() => "done"),
  );
  const run = async (...ids: string[]) => {
    for (const id of ids) await b.submit({}, { id });
    await b.drain();
    await new Promise((resolve) => setTimeout(resolve, 5));
  };
  await run("a", "b");
  const first = await reconciled(b.deps);
  await run("c", "d", "e");
  const second = await reconciled(b.deps);
  await run("f");
  const before = await b.deps.store.getRecord("reports");
  const look = (from: number, to: number) =>
    lookBack(b.deps, new AbortController().signal, { from, to }).then(
      (report) => report && verdictOf(report),
    );
  const { to: one } = first.report.span;
  const { to: two } = second.report.span;
  expect(await look(one, two)).toMatchObject({ sequences: 3, ok: true });
  expect(await look(0, one)).toMatchObject({ sequences: 2, ok: true });
  expect(await look(two, Date.now() + 1_000)).toMatchObject({ sequences: 1, ok: true });
  expect(await b.deps.store.getRecord("reports")).toEqual(before);
});

test("people are told of a report once, also when the webhook is away at first and two run at once", async () => {
  await using b = await bench(
    nats,
    "nats-kv",
    agentOf(() => "done"),
  );
  await b.submit({}, { id: "t" });
  await b.drain();
  const told: Notice[] = [];
  let tries = 0;
  const notify = async (notice: Notice) => {
    if (++tries < 3) throw new Error("away");
    told.push(notice);
  };
  const sleep = async () => {};
  Object.assign(b.deps, { notify, clock: { ...b.deps.clock, sleep } });
  const [one, two] = await Promise.all([reconciled(b.deps), reconciled(b.deps)]);
  expect(one.listed).toEqual(two.listed);
  expect(told).toMatchObject([
    {
      type: "report.written",
      id: `report.${one.listed.name}.${one.listed.stamp}`,
      data: {
        ok: true,
        level: "ok",
        verdict: "All 1 sequences explained; nothing completed twice.",
        findings: {},
      },
    },
  ]);
});
