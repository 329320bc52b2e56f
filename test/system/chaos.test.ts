import { expect, test } from "vitest";
import { submit } from "../../shared/journey/submit.ts";
import { laneOf, type Queue, streamName } from "../../shared/task/names.ts";
import { freeze } from "../support/freeze.ts";
import { type Note, notes, pawl, type Runner, recordFile } from "../support/runners.ts";
import { testNats, wired, world } from "../support/stores.ts";
import { allCompleted } from "../support/until.ts";

const TASKS = 500;
const RUNNERS = 8;
const LANES = 4;
const KILLING_MS = 60_000;
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

interface Execution {
  readonly id: string;
  readonly start: number;
  /** The last moment at which it could have done anything. */
  readonly end: number;
  readonly finished: boolean;
}

/** What the test did to its runners. */
interface Deeds {
  readonly killedAt: Map<number, number>;
  readonly frozen: { pid: number; from: number; to: number }[];
}

/** How long after it wakes a frozen process may take to notice, say so, or be killed. */
const WAKING = 250;

/** Executions by the handlers' own account, and the test's own of whom it killed and froze when. */
function executions(all: readonly Note[], { killedAt, frozen }: Deeds): Execution[] {
  return all
    .filter((note) => note.what === "start")
    .map(({ id, run, pid, at: start }) => {
      const last = all.find((note) => note.run === run && note.what !== "start");
      const finished = last?.what === "end";
      const end = last?.at ?? killedAt.get(pid) ?? Number.POSITIVE_INFINITY;
      // One that was frozen, and on waking only noticed that it was aborted, acted no more once it was frozen.
      const asleep = frozen.find(
        (one) => one.pid === pid && one.from >= start && one.to <= end && end - one.to < WAKING,
      );
      return { id, start, end: !finished && asleep ? asleep.from : end, finished };
    });
}

function overlaps(of: readonly Execution[]): Execution[][] {
  const byTask = Map.groupBy(of, (one) => one.id);
  return [...byTask.values()].flatMap((list) => {
    const sorted = list.toSorted((a, b) => a.start - b.start);
    return sorted.flatMap((one, i) => {
      const next = sorted[i + 1];
      return next && next.start < one.end ? [[one, next]] : [];
    });
  });
}

test("500 tasks, 8 runners, random kills for 60 s: all completed, none overlapped, every sequence settled", async () => {
  await using nats = await testNats();
  const w = world(nats, "nats-kv", { ackWait: 1_000, crashLimit: 50 });
  await using deps = await wired(w.config);
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
  // Spread over the whole minute, so that there is always something to kill in the middle of.
  const publisher = (async () => {
    for (const id of ids) {
      await submit(deps, {
        agent: "recorder",
        lanes: LANES,
        id,
        input: { ms: 20 + Math.floor(Math.random() * 200) },
      });
      await sleep(KILLING_MS / TASKS - 15);
    }
  })();

  const env = { TEST_RECORD: file, TEST_LANES: String(LANES) };
  const start = () => pawl(w, ["run", "recorder", "--json"], env);
  const runners: Runner[] = Array.from({ length: RUNNERS }, start);
  const deeds: Deeds = { killedAt: new Map(), frozen: [] };
  const until60 = Date.now() + KILLING_MS;
  let kills = 0;
  while (Date.now() < until60) {
    await sleep(300 + Math.random() * 900);
    const victim = Math.floor(Math.random() * RUNNERS);
    const runner = runners[victim] as Runner;
    // Now and then frozen for a while first: the zombies are the dangerous ones.
    if (Math.random() < 0.3) {
      await freeze(runner.pid);
      const from = Date.now();
      await sleep(Math.random() * 2_500);
      // Stamped before it is woken: what it notes on waking must not seem older than the thaw.
      deeds.frozen.push({ pid: runner.pid, from, to: Date.now() });
      process.kill(runner.pid, "SIGCONT");
      if (Math.random() < 0.5) continue;
    }
    await runner.kill("SIGKILL");
    deeds.killedAt.set(runner.pid, Date.now());
    kills++;
    runners[victim] = start();
  }
  await publisher;

  await allCompleted(deps.store, ids, 120_000);
  for (const runner of runners) await runner.kill("SIGTERM");

  const all = executions(notes(file), deeds);
  expect(overlaps(all)).toEqual([]);
  // Something was really interrupted, or this proved nothing.
  expect(kills).toBeGreaterThan(20);
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
}, 300_000);
