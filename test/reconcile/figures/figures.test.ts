import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { Retry } from "../../../shared/agent.ts";
import { cancel, signal } from "../../../shared/dispatch/operate.ts";
import { submit } from "../../../shared/dispatch/submit.ts";
import type { TaskStore } from "../../../shared/ports/store.ts";
import { total } from "../../../shared/reconcile/figures/tally.ts";
import { writers } from "../../../shared/reconcile/page/writers.ts";
import { reconcile } from "../../../shared/reconcile/reconcile.ts";
import type { Reconciled } from "../../../shared/reconcile/write.ts";
import { serve } from "../../../shared/runner/serve.ts";
import { AGENT, agentOf, type Bench, bench } from "../../support/bench.ts";
import { dead } from "../../support/faults/death.ts";
import { inSlices, namesOf, patched, reconciled } from "../../support/reconciling.ts";
import { hasEmulator, testNats } from "../../support/servers/stores.ts";
import { until } from "../../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const DAY = 86_400_000;
const never = new AbortController().signal;
const echo = agentOf(() => "done");
const kinds = [
  { kind: "nats-kv" as const, here: true, tasks: 160 },
  { kind: "firestore-rest" as const, here: hasEmulator, tasks: 60 },
];
const figures = ({ report }: Reconciled) => total(report.agents);

/** Many at once, as publishers are. */
async function submitAll(b: Bench, ids: readonly string[], deps = b.deps): Promise<void> {
  for (let i = 0; i < ids.length; i += 20)
    await Promise.all(
      ids.slice(i, i + 20).map((id) => submit(deps, { agent: AGENT, lanes: 1, id, input: {} })),
    );
}
const named = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}-${i}`);
const behind = (b: Bench): Bench["deps"] => ({
  ...b.deps,
  clock: { ...b.deps.clock, now: () => Date.now() - DAY },
});

describe.each(kinds)("tasks that came, $kind", ({ kind, here, tasks }) => {
  test.skipIf(!here)("are all counted by a run out of time, whatever changes until it goes on", async () => {
    await using b = await bench(nats, kind, echo);
    await submitAll(b, named("old", tasks / 4));
    await b.drain();
    await submitAll(b, named("t", (3 * tasks) / 4));
    patched(b, { pageSize: 20 });
    let slices = 0;
    const first = await inSlices(b.deps, 10, async (slice) => {
      slices = slice;
      if (slice === 2) await b.drain();
    });
    expect(slices).toBeGreaterThan(2);
    expect(namesOf(first)).toEqual([]);
    expect(figures(first)).toMatchObject({ created: tasks });
    const last = figures(await reconciled(b.deps));
    expect(last).toMatchObject({ created: tasks, completed: tasks, executions: tasks });
    expect(last.classes).toMatchObject({ completed: tasks, queued: 0, unexplained: 0 });
  });

  test.skipIf(!here)("are counted the week after a run whose clock was a day ahead", async () => {
    await using b = await bench(nats, kind, echo);
    await submitAll(b, named("before", 3));
    await b.drain();
    const { clock } = b.deps;
    Object.assign(b.deps, { clock: { ...clock, now: () => Date.now() + DAY } });
    expect(namesOf(await reconciled(b.deps))).toEqual(["clock_off clocks"]);
    Object.assign(b.deps, { clock });
    await submitAll(b, named("after", 20));
    await b.drain();
    const next = await reconciled(b.deps);
    expect(figures(next)).toMatchObject({ created: 23, completed: 23 });
    expect(figures(next).classes).toMatchObject({ completed: 23, unexplained: 0 });
  });

  test.skipIf(!here)("are counted once by three runs that were killed four times each", async () => {
    await using b = await bench(nats, kind, echo);
    patched(b, { pageSize: 8 });
    let sent = 0;
    for (let run = 1; run <= 3; run++) {
      await submitAll(b, named(`run${run}`, 20));
      sent += 20;
      if (run !== 2) await b.drain();
      for (let kill = 1; kill <= 4; kill++) {
        await killedAfter(b, 5 + 6 * kill);
        await submitAll(b, named(`run${run}-kill${kill}`, 3));
        sent += 3;
        if (kill % 2 === 0) await b.drain();
      }
      expect(namesOf(await reconciled(b.deps))).toEqual([]);
    }
    await b.drain();
    const last = await reconciled(b.deps);
    expect(namesOf(last)).toEqual([]);
    expect(figures(last)).toMatchObject({ created: sent, completed: sent, executions: sent });
    expect(figures(last).classes).toMatchObject({ completed: sent, unexplained: 0 });
  });
});

/** A reconciliation whose process dies with its so-manieth call of the store, and says nothing more. */
async function killedAfter(b: Bench, calls: number): Promise<void> {
  const died = Promise.withResolvers<void>();
  let made = 0;
  const mortal = Object.entries(b.deps.store).map(([name, value]: [string, unknown]) => {
    if (typeof value !== "function") return [name, value];
    const ask = (...args: unknown[]) => {
      if (++made < calls) return (value as (...args: unknown[]) => unknown)(...args);
      died.resolve();
      return dead();
    };
    return [name, ask];
  });
  const store = Object.fromEntries(mortal) as TaskStore;
  const options = { repair: false, writers, saveEvery: 1 };
  await Promise.race([died.promise, reconcile({ ...b.deps, store }, never, options)]);
}

test("tasks of a publisher and a runner whose clocks are a day behind are counted like all others", async () => {
  await using b = await bench(nats, "nats-kv", echo);
  patched(b, { pageSize: 12 });
  const late = behind(b);
  let sent = 0;
  for (const week of [1, 2]) {
    for (const part of [1, 2, 3]) {
      await submitAll(b, named(`right-${week}-${part}`, 21));
      await submitAll(b, named(`late-${week}-${part}`, 9), late);
      sent += 30;
      await serve(part === 2 ? late : b.deps, { name: AGENT, agent: echo, mode: "drain", stop: never });
    }
    const done = await reconciled(b.deps);
    expect(new Set(done.report.findings.named.map(({ kind }) => kind))).toEqual(new Set(["clock_back"]));
    expect(figures(done)).toMatchObject({ created: sent, completed: sent, executions: sent });
    expect(figures(done).classes).toMatchObject({ completed: sent, unexplained: 0 });
  }
  expect(sent).toBe(180);
});

test("duplicates caught by the document are those, and tasks cancelled in their queue are cancelled", async () => {
  await using b = await bench(nats, "nats-kv", echo, { duplicateWindow: 100 });
  for (const week of [1, 2]) {
    const ids = named(`w${week}`, 45);
    await submitAll(b, ids);
    for (const id of ids.slice(0, 20)) await cancel(b.deps, id);
    // One report sees half of them before their messages were pulled.
    if (week === 2) await reconciled(b.deps);
    await b.drain();
    for (const id of [...ids.slice(15, 20), ...ids.slice(35)])
      expect(await b.submit({}, { id })).toMatchObject({ kind: "already", stoppedBy: "document" });
    const done = await reconciled(b.deps);
    expect(namesOf(done)).toEqual([]);
    const { duplicates, skipped, classes, ...rest } = figures(done);
    expect({ ...duplicates, skipped }).toEqual({
      window: 0,
      subject: 0,
      document: 15 * week,
      key: 0,
      skipped: 0,
    });
    expect(classes).toMatchObject({ duplicate: 0, cancelled: 20 * week, completed: 25 * week, queued: 0 });
    expect(rest).toMatchObject({ created: 45 * week, cancelled: 20 * week, completed: 25 * week });
  }
});

test("retries and executions of pollers are counted in full, over two reports, whatever a history keeps", async () => {
  const counted = { starts: 0, retries: 0 };
  const poller = agentOf(
    async ({ input, waitFor }) => {
      counted.starts++;
      if ((input as { flaky?: boolean }).flaky) {
        counted.retries++;
        throw new Retry("not yet", 1);
      }
      for (;;) await waitFor("tick");
    },
    { attempts: 1_000 },
  );
  await using b = await bench(nats, "nats-kv", poller);
  await b.submit({}, { id: "hourly" });
  await b.submit({ flaky: true }, { id: "flaky" });
  for (const week of [1, 2]) {
    await until("both came often", async () => {
      await b.drain();
      await signal(b.deps, "hourly", "tick", null);
      await b.drain();
      const tasks = [await b.task("hourly"), await b.task("flaky")];
      return tasks.every(({ executions, history }) => executions >= 30 * week && history.length === 48);
    });
    const done = await reconciled(b.deps);
    expect(namesOf(done)).toEqual([]);
    expect(figures(done)).toMatchObject({
      created: 2,
      executions: counted.starts,
      retries: counted.retries,
    });
  }
  expect(counted.starts).toBeGreaterThanOrEqual(120);
});

test("tasks in doubt are as many as there are, in each of four runs of a week", async () => {
  const run = () => {
    throw new Error("the line went dead");
  };
  const backoff = { first: "1ms", longest: "1ms" };
  const doubter = agentOf(({ effect }) => effect("pay", { run }), { backoff });
  await using b = await bench(nats, "nats-kv", doubter);
  const runs = [
    { more: 130, expected: 130 },
    { more: 0, expected: 130 },
    { more: 20, expected: 150 },
    { more: 0, expected: 150 },
  ];
  for (const [run, { more, expected }] of runs.entries()) {
    const ids = named(`r${run}`, more);
    await submitAll(b, ids);
    await until("all of them are in doubt", async () => {
      await b.drain();
      const tasks = await Promise.all(ids.map((id) => b.task(id)));
      return tasks.every(({ state }) => state === "in_doubt");
    });
    const { report } = await reconciled(b.deps);
    expect(report.findings.counts).toEqual({ in_doubt: expected });
    expect(report.live).toEqual({ [AGENT]: { in_doubt: expected } });
    expect(total(report.agents).classes.in_doubt).toBe(expected);
  }
});
