import { expect, test } from "vitest";
import { defineAgent } from "../../shared/agent.ts";
import { ensureQueue, queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { readCounts, storeMeter } from "../../shared/meter/meter.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import type { Meter } from "../../shared/ports/meter.ts";
import { runWoken } from "../../shared/runner/woken.ts";
import { sealed } from "../../shared/seal/sealed.ts";
import { memoryStore } from "../../shared/testing/memory-store.ts";
import { quickSealer } from "../sim/world/sealer.ts";
import { CalmWorld } from "../support/servers/simulated.ts";

const NAME = "a";
/** There and back. */
const ROUND_TRIP = 1;

/** A world in which every request takes as long, so that the time that passes says how many are made one after the other. */
async function woken(tasks: number, lanes = 1): Promise<number> {
  const world = new CalmWorld();
  Object.assign(world.process.random, { between: () => ROUND_TRIP / 2, chance: () => false });
  const { settings, process } = world;
  const deps: Deps = {
    store: sealed(world.store(), quickSealer, () => {}),
    bus: world.bus(),
    clock: process.clock,
    log: () => {},
    settings,
    runner: "r",
    meter: { count: () => {}, flush: async () => {} },
    invocation: { left: () => 60_000, longest: 60_000 },
    sealer: quickSealer,
  };
  const agent = defineAgent({ limits: { lanes }, run: () => ({ ok: true }) });
  const { signal: stop } = process.stop;
  const queues = Array.from({ length: lanes }, (_, lane) => queueOf(deps, { agent: NAME, lane }));
  await world.until(Promise.all(queues.map((queue) => ensureQueue(deps, queue, "correct"))));
  for (let i = 0; i < tasks; i++)
    await world.until(submit(deps, { agent: NAME, lanes, input: {}, id: `t${i}` }));
  const begun = world.time.now;
  const { handled } = await world.until(runWoken(deps, { name: NAME, agent, stop }));
  expect(handled).toEqual(tasks > 0 ? { completed: tasks } : {});
  return (world.time.now - begun) / ROUND_TRIP;
}

test("a woken function waits twice to learn that there is nothing to do, however many lanes it has", async () => {
  // Its queues and what is in them; what is due.
  expect(await woken(0)).toBe(2);
  expect(await woken(0, 4)).toBe(2);
});

test("with one task it waits five times more, and three times for each that is behind", async () => {
  // Pull, claim, completion, ack, and a look whether there is more.
  expect(await woken(1)).toBe(7);
  // The next pull is sent with the ack.
  expect(await woken(3)).toBe(7 + 2 * 3);
});

test("counts are added up by one write, once a process knows what it adds them to", async () => {
  const store = memoryStore();
  let reads = 0;
  const getRecord: typeof store.getRecord = (name) => {
    reads++;
    return store.getRecord(name);
  };
  const meters = [1, 2].map(() => storeMeter({ ...store, getRecord }, () => {}));
  const [own, other] = meters as [Meter, Meter];
  for (let i = 0; i < 100; i++) {
    own.count("takeovers", { agent: NAME });
    await own.flush();
  }
  // Each of the few documents once.
  expect(reads).toBeLessThanOrEqual(8);
  // What somebody else adds to them is not lost.
  for (const meter of [
    ...Array.from({ length: 20 }, () => other),
    ...Array.from({ length: 20 }, () => own),
  ]) {
    meter.count("takeovers", { agent: NAME });
    await meter.flush();
  }
  expect(await readCounts(store)).toEqual({ 'pawl_takeovers_total{agent="a"}': 140 });
});
