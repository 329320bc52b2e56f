import { expect, test } from "vitest";
import { submit } from "../../shared/dispatch/submit.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { published, total } from "../../shared/reconcile/figures/tally.ts";
import type { DuplicateLayer } from "../../shared/task/document.ts";
import { isFinal } from "../../shared/task/table.ts";
import { observer } from "../support/observer.ts";
import { namesOf, reconciled } from "../support/reconciling.ts";
import { notes, pawl, type Runner, recordFile } from "../support/servers/runners.ts";
import { testNats, world } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

const TASKS = 60;
const KILLS = 6;
const LANES = 2;

test("a chaotic run: the report's numbers are those that publishers and handlers counted themselves", async () => {
  await using nats = await testNats();
  const w = world(nats, "nats-kv", { ackWait: 1_000, duplicateWindow: 700, crashLimit: 100 });
  await using deps = await observer(w);
  const { namespace, generation } = w.config.settings;
  const queues = Array.from({ length: LANES }, (_, lane) => ({
    namespace,
    agent: "shaky",
    lane,
    generation,
  }));
  for (const queue of queues) await deps.bus.ensure(queue);
  const record = await recordFile();
  const start = () => pawl(w, ["run", "shaky", "--json"], { TEST_RECORD: record });
  const runners: Runner[] = [start(), start()];

  // The publishers' own account.
  const stopped: Record<DuplicateLayer, number> = { window: 0, subject: 0, document: 0, key: 0 };
  const outcomes = new Map<string, string>();
  const send = async (n: number) => {
    const outcome = n % 10 === 0 ? "fatal" : n % 4 === 0 ? "retry" : "done";
    const byKey = n % 5 === 1;
    const id = byKey ? `k-${n}` : `t-${n}`;
    const input = { outcome, ms: 5 + (n % 7) * 10 };
    const sent = await submit(deps, { agent: "shaky", lanes: LANES, id, input, byKey });
    outcomes.set(id, outcome);
    if (sent.stoppedBy) stopped[sent.stoppedBy]++;
  };
  const publishing = (async () => {
    for (let n = 0; n < TASKS; n++) {
      await send(n);
      // Somebody sends older ones again.
      if (n % 3 === 0) await send(Math.floor(Math.random() * (n + 1)));
      await new Promise((resolve) => setTimeout(resolve, 60));
    }
  })();
  for (let kills = 0; kills < KILLS; kills++) {
    await new Promise((resolve) => setTimeout(resolve, 300 + Math.random() * 500));
    await runners.shift()?.kill("SIGKILL");
    runners.push(start());
  }
  await publishing;
  const over = async () => {
    await dispatchDue(deps, "shaky", undefined, { lanes: LANES });
    for (const id of outcomes.keys()) {
      const task = (await deps.store.get(id))?.task;
      if (!task || !isFinal(task)) return false;
    }
    return true;
  };
  await until("every task is over", over, 60_000);

  // Published once more, past every window: the document stops them.
  let strays = 0;
  for (const [id, outcome] of [...outcomes].slice(0, 8)) {
    const task = (await deps.store.get(id))?.task;
    const queue = queues[task?.lane ?? 0] as (typeof queues)[number];
    const data = new TextEncoder().encode(JSON.stringify({ v: 1, input: task?.input }));
    const sent = await deps.bus.publish(queue, {
      taskId: id,
      data,
      msgId: `stray-${id}-${outcome}`,
      headers: {},
    });
    if (sent.kind === "stored") strays++;
  }
  await until("the strays are settled", async () => {
    const states = await Promise.all(queues.map((queue) => deps.bus.state(queue)));
    return states.every(({ pending, inFlight }) => pending + inFlight === 0);
  });
  for (const runner of runners) await runner.kill("SIGTERM");

  const done = await reconciled(deps);
  expect(namesOf(done)).toEqual([]);
  const all = total(done.report.agents);
  const counted = (what: string) => notes(record).filter((note) => note.what === what).length;
  const fatal = [...outcomes.values()].filter((outcome) => outcome === "fatal").length;
  expect(all).toMatchObject({
    created: outcomes.size,
    completed: outcomes.size - fatal,
    failed: fatal,
    deadLetters: { fatal },
    duplicates: stopped,
    executedTwice: 0,
  });
  expect(strays).toBe(8);
  expect(all.classes.duplicate).toBe(strays);
  // A killed process may have begun, or failed, without a word of its own, or of Pawl's.
  expect(all.executions).toBeGreaterThanOrEqual(counted("start"));
  expect(all.executions).toBeLessThanOrEqual(counted("start") + KILLS * LANES);
  expect(all.retries).toBeLessThanOrEqual(counted("retry"));
  expect(all.retries).toBeGreaterThanOrEqual(counted("retry") - KILLS * LANES);
  // What the streams counted: a message for each task, one more for each retry, and the strays.
  const infos = await Promise.all(queues.map((queue) => deps.bus.inspect(queue)));
  const accepted = infos.reduce((sum, info) => sum + info.lastSeq, 0);
  expect(published(all)).toBe(accepted);
  expect(accepted).toBe(outcomes.size + all.retries + strays);
});
