import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { agentOf, bench } from "../support/bench.ts";
import { disturbed } from "../support/faults/disturb.ts";
import { observer } from "../support/observer.ts";
import { notes, pawl, recordFile } from "../support/servers/runners.ts";
import { testNats, world } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test("a process that dies after every step gets on: each step once, and progress is no crash loop", async () => {
  const w = world(nats, "nats-kv", { ackWait: 1_000, crashLimit: 2 });
  await using deps = await observer(w);
  const file = await recordFile();
  const { namespace, generation } = w.config.settings;
  await deps.bus.ensure({ namespace, agent: "stepper", lane: 0, generation });
  await submit(deps, { agent: "stepper", lanes: 1, id: "t", input: { steps: 5, dieAfterEach: true } });
  const state = async () => (await deps.store.get("t"))?.task.state;
  for (let deaths = 0; (await state()) !== "completed"; deaths++) {
    expect(deaths).toBeLessThan(6);
    expect(await pawl(w, ["run", "stepper", "--drain", "--json"], { TEST_RECORD: file }).exited).toBe(
      deaths < 5 ? "SIGKILL" : 0,
    );
  }
  expect(notes(file).map((note) => note.run)).toEqual(["s0", "s1", "s2", "s3", "s4"]);
  const task = (await deps.store.get("t"))?.task;
  expect(task).toMatchObject({ state: "completed", result: { sum: 10 }, attempts: 0, journaled: 5 });
  // On a busy machine a lease of 0.7 s may lapse as well: one more claim, and none of the steps again.
  expect(task?.executions).toBeGreaterThanOrEqual(6);
  expect(task?.fence).toBeGreaterThanOrEqual(task?.executions as number);
});

test("1,000 steps: what each costs does not grow, and a resume after the last reads no more than it must", async () => {
  const STEPS = 1_000;
  let ran = 0;
  const bytes: number[] = [];
  const agent = agentOf(
    async ({ step, attempt }) => {
      for (let i = 0; i < STEPS; i++) {
        await step("null", () => {
          ran++;
          return null;
        });
        if (i === STEPS - 2 && attempt === 1) throw new Error("fails at step 999");
      }
    },
    { attempts: 2, backoff: { first: "1ms" } },
  );
  await using b = await bench(nats, "nats-kv", agent);
  const counted = disturbed(b.deps.store, 0, (write) => write());
  let reads = 0;
  const store = {
    ...counted,
    putHead: (...args: Parameters<typeof counted.putHead>) => {
      bytes.push(JSON.stringify(args[0]).length);
      return counted.putHead(...args);
    },
    getPart: (...args: Parameters<typeof counted.getPart>) => ++reads && counted.getPart(...args),
  };
  Object.assign(b.deps, { store });
  await b.submit({}, { id: "t" });
  await b.drain();
  expect((await b.task("t")).state).toBe("scheduled");
  const firstRun = bytes.length;
  expect(firstRun).toBe(STEPS - 1);
  const most = (list: number[]) => Math.max(...list);
  // Written per step: the last hundred cost as much as an early hundred, but for the names of the pages.
  expect(most(bytes.slice(-100))).toBeLessThan(most(bytes.slice(100, 200)) * 1.3);
  await until("t is completed", async () => {
    await b.drain();
    return (await b.task("t")).state === "completed";
  });
  expect(ran).toBe(STEPS);
  expect(bytes.length - firstRun).toBe(2);
  expect(reads).toBe(Math.floor((STEPS - 1) / 50));
});
