import { expect, test } from "vitest";
import { freeze } from "../../infra/drills/faults/freeze.ts";
import { executions, overlaps } from "../../infra/drills/outside/executions.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { laneOf, type Queue, streamName } from "../../shared/task/names.ts";
import { observer } from "../support/observer.ts";
import { notes, pawl, type Runner, recordFile } from "../support/servers/runners.ts";
import { testNats, world } from "../support/servers/stores.ts";
import { allCompleted } from "../support/time/until.ts";

const TASKS = 200;
const RUNNERS = 8;
const LANES = 4;
/** `npm run soak` does the like for as long as one wants. */
const KILLING_MS = 20_000;
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test("200 tasks, 8 runners, random kills for 20 s: all completed, none overlapped, every sequence settled", async () => {
  await using nats = await testNats();
  const w = world(nats, "nats-kv", { ackWait: 1_000, crashLimit: 50 });
  await using deps = await observer(w);
  const { namespace } = w.config.settings;
  const file = await recordFile();
  const queues: Queue[] = Array.from({ length: LANES }, (_, lane) => ({
    namespace,
    agent: "recorder",
    lane,
    generation: 1,
  }));
  for (const queue of queues) await deps.bus.ensure(queue);

  const ids = Array.from({ length: TASKS }, (_, i) => `t${i}`);
  // Spread over the whole time, so that there is always something to kill in the middle of.
  const publisher = (async () => {
    for (const id of ids) {
      await submit(deps, {
        agent: "recorder",
        lanes: LANES,
        id,
        input: { ms: 20 + Math.floor(Math.random() * 200), every: 10 },
      });
      await sleep(KILLING_MS / TASKS - 15);
    }
  })();

  const env = { TEST_RECORD: file, TEST_LANES: String(LANES) };
  const start = () => pawl(w, ["run", "recorder", "--json"], env);
  const runners: Runner[] = Array.from({ length: RUNNERS }, start);
  const everyone = [...runners];
  const done: { at: number; pid: number; what: string }[] = [];
  const note = (pid: number, what: string) => done.push({ at: Date.now(), pid, what });
  const end = Date.now() + KILLING_MS;
  let kills = 0;
  /** One that is in the middle of something, or was a moment ago. */
  const oneAtWork = () => {
    const begun = notes(file).findLast(({ what, pid }) => what === "start" && isThere(pid));
    return Math.max(
      0,
      runners.findIndex(({ pid }) => pid === begun?.pid),
    );
  };
  const isThere = (pid: number) => runners.some((one) => one.pid === pid);
  while (Date.now() < end || kills <= 15) {
    await sleep(200 + Math.random() * 700);
    const victim = Math.random() < 0.5 ? oneAtWork() : Math.floor(Math.random() * RUNNERS);
    const runner = runners[victim] as Runner;
    // Now and then frozen for a while first: the zombies are the dangerous ones.
    if (Math.random() < 0.3) {
      await freeze(runner.pid);
      note(runner.pid, "frozen");
      await sleep(Math.random() * 2_500);
      note(runner.pid, "woken");
      process.kill(runner.pid, "SIGCONT");
      if (Math.random() < 0.5) continue;
    }
    note(runner.pid, "killed");
    await runner.kill("SIGKILL");
    kills++;
    const fresh = start();
    runners[victim] = fresh;
    everyone.push(fresh);
  }
  await publisher;

  await allCompleted(deps.store, ids, 300_000);
  for (const runner of runners) await runner.kill("SIGTERM");

  const all = executions(notes(file));
  // A pair that overlaps is shown with all that there is to know about it: it will not be seen again.
  const found = overlaps(all).map(async (pair) => {
    const pids = pair.map((one) => one.notes[0]?.pid);
    return {
      pair,
      document: (await deps.store.get(pair[0]?.id as string))?.task.history,
      done: done.filter((one) => pids.includes(one.pid)),
      said: everyone.filter((one) => pids.includes(one.pid)).map((one) => one.text()),
    };
  });
  expect(await Promise.all(found)).toEqual([]);
  // Something was really interrupted, or this proved nothing.
  expect(kills).toBeGreaterThan(15);
  expect(all.length).toBeGreaterThan(TASKS);

  const settled = new Map<string, Set<number>>();
  for (const id of ids) {
    const task = (await deps.store.get(id))?.task;
    if (!task) throw new Error(`no document of ${id}`);
    const mine = all.filter((one) => one.id === id);
    // A kill between the claim and the handler's first line counts as an execution that never began.
    expect(task.executions, id).toBeGreaterThanOrEqual(mine.length);
    expect(task.fence, id).toBe(task.history.filter((entry) => /claim|takeover/.test(entry.event)).length);
    expect(task.attempts, id).toBe(0);
    expect(task.settled, id).toHaveLength(1);
    const queue = streamName(queues[laneOf(id, LANES)] as Queue);
    for (const one of task.settled) {
      expect(one, id).toMatchObject({ queue, outcome: "completed" });
      settled.set(queue, (settled.get(queue) ?? new Set()).add(one.seq));
    }
  }
  // Every sequence that any stream ever gave out is accounted for, once.
  for (const queue of queues) {
    const numbers = [...(settled.get(streamName(queue)) ?? [])].sort((a, b) => a - b);
    expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, i) => i + 1));
    expect(await deps.bus.state(queue)).toEqual({ pending: 0, inFlight: 0 });
  }
}, 600_000);
