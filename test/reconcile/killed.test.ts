import { jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { expect, inject, test } from "vitest";
import { loadTasks } from "../../bench/load.ts";
import { readReport } from "../../shared/reconcile/books/reports.ts";
import type { Report } from "../../shared/reconcile/figures/report.ts";
import { total } from "../../shared/reconcile/figures/tally.ts";
import { paceOf } from "../../shared/reconcile/pace.ts";
import { writers } from "../../shared/reconcile/page/writers.ts";
import { planOrResume } from "../../shared/reconcile/progress.ts";
import { reconcile } from "../../shared/reconcile/reconcile.ts";
import { streamName } from "../../shared/task/names.ts";
import { startProcess } from "../support/servers/runners.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";

const KILLS = 10;
const TASKS = 20_000;
const LONG_AGO = { at: Date.now() - 600_000, idOf: (seq: number) => `task-${seq}` };

test("killed at ten random points and started again, it makes the same report, byte for byte", async () => {
  await using nats = await testNats();
  const w = world(nats, "nats-kv");
  await using deps = await wired(w.config);
  const { namespace } = w.config.settings;
  await loadTasks(deps, { namespace, agent: "echo", lane: 0, generation: 1 }, { count: TASKS, ...LONG_AGO });
  const bucket = await new Kvm(deps.nc).open(`${namespace}-tasks`);
  // Something to be found, at both ends and in the middle.
  for (const seq of [3, 6_000, 6_001, 11_999]) await bucket.purge(`task.task-${seq}`);
  await planOrResume(paceOf(deps, new AbortController().signal));
  const plan = (await deps.store.getRecord("reconcile-progress"))?.text as string;

  let kills = 0;
  let resumed = 0;
  for (let isDone = false; !isDone; ) {
    const child = startProcess([inject("programs").reconcile], w.env);
    if (kills < KILLS) {
      // The first one only after it has saved something: ten that are killed before that leave nothing to go on from.
      const page = kills === 0 ? 6 : 1 + Math.floor(Math.random() * 6);
      await child.says(new RegExp(`^page ${page}\\.`));
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 20));
      await child.kill("SIGKILL");
      kills++;
    } else expect(await child.exited).toBe(0);
    if (child.text().includes("reconcile.resumed")) resumed++;
    isDone = child.text().includes("done ");
  }
  expect(kills).toBe(KILLS);
  // It did not begin anew each time.
  expect(resumed).toBeGreaterThan(0);
  const killed = await texts();

  // The same plan once more, in one go.
  for (const record of ["reports", "reconciled"]) await bucket.purge(`record.${record}`);
  const seen = await deps.store.getRecord("reconcile-progress");
  await deps.store.putRecord("reconcile-progress", plan, seen?.revision);
  await reconcile(deps, new AbortController().signal, { repair: false, writers });
  expect(await texts()).toEqual(killed);
  expect(killed.json.findings.named.map(({ detail }) => detail)).toEqual(["sequences 3, 6000-6001, 11999"]);
  expect(killed.json.documents).toBe(TASKS - 4);

  /** Apart from when it was written. */
  async function texts() {
    const json = JSON.parse((await readReport(deps.store, "json")).text) as Report;
    const at = new Date(json.writtenAt).toISOString();
    const { text: html } = await readReport(deps.store, "html");
    const { text: md } = await readReport(deps.store, "md");
    return { json: { ...json, writtenAt: 0 }, html: html.replaceAll(at, ""), md };
  }
});

test("out of time it keeps what it found, and the next call goes on; two at once make one report", async () => {
  await using nats = await testNats();
  const w = world(nats, "nats-kv");
  await using deps = await wired(w.config);
  const { namespace } = w.config.settings;
  await loadTasks(deps, { namespace, agent: "echo", lane: 0, generation: 1 }, { count: 3_000, ...LONG_AGO });
  const stop = new AbortController();
  let pages = 0;
  const changes: typeof deps.store.changes = (...args) => {
    if (++pages === 3) stop.abort();
    return deps.store.changes(...args);
  };
  const options = { repair: true, writers };
  expect(
    await reconcile({ ...deps, store: { ...deps.store, pageSize: 500, changes } }, stop.signal, options),
  ).toBeUndefined();
  expect(await deps.store.getRecord("reports")).toBeUndefined();

  pages = 0;
  const going = { ...deps, store: { ...deps.store, pageSize: 500, changes } };
  const both = await Promise.all([
    reconcile(going, new AbortController().signal, options),
    reconcile(deps, new AbortController().signal, options),
  ]);
  for (const done of both)
    expect(done?.listed.verdict).toBe("All 3,000 sequences explained; nothing completed twice.");
  expect(deps.logged.filter(({ event }) => event === "reconcile.resumed")).toHaveLength(2);
  const ledger = JSON.parse((await deps.store.getRecord("reports"))?.text ?? "") as { past: unknown[] };
  expect(ledger.past).toHaveLength(1);
  expect(both[0]?.report.runs).toBe(1);
});

test("out of time in any of its passes, it goes on, and the report is the same", async () => {
  await using nats = await testNats();
  const w = world(nats, "nats-kv");
  await using deps = await wired(w.config);
  const { namespace } = w.config.settings;
  const queue = { namespace, agent: "echo", lane: 0, generation: 1 };
  await loadTasks(deps, queue, { count: 1_200, ...LONG_AGO });
  await reconcile(deps, new AbortController().signal, { repair: false, writers });
  // A second period, with something unexplained: every pass has something to do.
  await (await jetstreamManager(deps.nc)).streams.purge(streamName(queue), { seq: 1_203 });
  let calls = 0;
  for (let cutAt = 1; ; cutAt++) {
    const stop = new AbortController();
    let lists = 0;
    const changes: typeof deps.store.changes = (...args) => {
      if (++lists === cutAt) stop.abort();
      return deps.store.changes(...args);
    };
    calls++;
    const store = { ...deps.store, pageSize: 500, changes };
    const done = await reconcile({ ...deps, store }, stop.signal, { repair: false, writers });
    if (!done) continue;
    expect(done.report.findings.named).toMatchObject([
      { kind: "unexplained", detail: "sequences 1201-1202" },
    ]);
    expect(total(done.report.agents)).toMatchObject({
      completed: 1_200,
      classes: { completed: 1_200, unexplained: 2 },
    });
    break;
  }
  expect(calls).toBeGreaterThan(3);
});
