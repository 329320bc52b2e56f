import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { StoreKind } from "../../functions/wiring/config.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { type Agent, defineAgent, Retry } from "../../shared/agent.ts";
import { agentQueues } from "../../shared/dispatch/queues.ts";
import { PawlError } from "../../shared/errors/errors.ts";
import { pauseAgent, pauseOf, resumeAgent } from "../../shared/pause/pause.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import { serve } from "../../shared/runner/serve.ts";
import { AGENT, agentOf, bench } from "../support/bench.ts";
import { oneOfEach, testNats, wired, world } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** A runner that looks whether its agent is paused when the test says so, and counts what it asks the store for. */
async function stage(agent: Agent, kind: StoreKind = "nats-kv") {
  const b = await bench(nats, kind, agent);
  const asked = { records: 0, isAway: false };
  let look = () => {};
  const deps: Deps = {
    ...b.deps,
    clock: {
      ...b.deps.clock,
      sleep: (ms, signal) => {
        if (ms !== 5_000) return b.deps.clock.sleep(ms, signal);
        return new Promise((resolve) => {
          look = resolve;
          signal?.addEventListener("abort", () => resolve());
        });
      },
    },
    store: {
      ...b.deps.store,
      getRecord: (name, of) => {
        if (name.startsWith("paused-")) asked.records++;
        if (asked.isAway) throw new PawlError("store_unavailable", "away");
        return b.deps.store.getRecord(name, of);
      },
    },
  };
  const stop = new AbortController();
  const says = (event: string, count = 1) =>
    until(event, async () => b.deps.logged.filter((one) => one.event === event).length >= count);
  return {
    ...b,
    asked,
    says,
    look: () => look(),
    serve: (mode: "forever" | "idle" | "drain" = "forever") =>
      serve(deps, { name: AGENT, agent, mode, stop: stop.signal }),
    stop: () => stop.abort(new Error("told to stop")),
    /** The runner has heard of it when this resolves. */
    pause: async (count = 1) => {
      await pauseAgent({ ...deps, actor: { name: "jo", via: "cli" } }, AGENT, "the board is down");
      look();
      await says("agent.paused", count);
    },
    resume: async () => {
      await resumeAgent(deps, AGENT);
      look();
      await says("agent.resumed");
    },
    state: () => b.deps.bus.state(b.queue),
  };
}

const QUIET = { pending: 1, inFlight: 0 };

test("what runs goes on, nothing new begins, and no delivery is spent", async () => {
  const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
  const begun: string[] = [];
  const agent = agentOf(async ({ id, step }) => {
    begun.push(id);
    if (id === "runs") await mayEnd;
    return step("done", () => id);
  });
  await using s = await stage(agent);
  await s.submit({}, { id: "runs" });
  const served = s.serve();
  await until("it runs", async () => begun.includes("runs"));
  await s.pause();
  await s.submit({}, { id: "waits" });
  end();
  await until("it has ended", async () => (await s.task("runs")).state === "completed");
  await until("its message is gone", async () => JSON.stringify(await s.state()) === JSON.stringify(QUIET));
  expect(begun).toEqual(["runs"]);
  expect(await s.task("waits")).toMatchObject({ state: "dispatched", executions: 0 });
  const [seen] = await agentQueues(s.deps, [{ name: AGENT, lanes: 1 }]);
  expect(seen).toMatchObject({ pending: 1, paused: { by: "jo via cli", why: "the board is down" } });
  await s.resume();
  await until("it is done", async () => (await s.task("waits")).state === "completed");
  s.stop();
  expect(await served).toEqual({ completed: 2 });
  // Delivered once, when it was resumed; and nobody asked for it before.
  const handled = s.deps.logged.filter(({ event }) => event === "task.handled");
  expect(handled.map(({ fields }) => fields.as)).toEqual(["completed", "completed"]);
  expect((await s.deps.bus.inspect(s.queue)).redelivered).toBe(0);
  expect((await s.task("waits")).history.map(({ event }) => event)).toEqual(["submit", "claim", "complete"]);
});

test("a pull that waits is withdrawn: what comes a moment later is not taken", async () => {
  await using s = await stage(agentOf(({ id }) => id));
  const served = s.serve();
  await s.submit({}, { id: "first" });
  await until("it is done", async () => (await s.task("first")).state === "completed");
  await s.pause();
  await s.submit({}, { id: "later" });
  // Whoever else pulled would be given it at once; that nobody does is seen at the server.
  await until("it waits", async () => (await s.state()).pending === 1);
  const probe = s.deps.bus.pull(s.queue, 2_000);
  const delivery = await probe.delivery;
  expect([delivery?.deliveries, delivery?.redelivered]).toEqual([1, false]);
  await delivery?.nak(0);
  await s.resume();
  await until("it is done too", async () => (await s.task("later")).state === "completed");
  s.stop();
  await served;
});

test("a strict lane keeps its order, and a try that was to come waits for the resume", async () => {
  const begun: string[] = [];
  const agent = defineAgent({
    limits: { order: "strict", attempts: 5 },
    run: async ({ id, attempt }) => {
      begun.push(`${id} ${attempt}`);
      if (id === "a" && attempt === 1) throw new Retry("not yet", 300);
    },
  });
  await using s = await stage(agent);
  await s.submit({}, { id: "a" });
  await s.submit({}, { id: "b" });
  const served = s.serve();
  await s.says("task.handled");
  // Its next try is not due yet, or just about to begin: from here on none does.
  await s.pause();
  const before = begun.length;
  await until("its time has come", async () => {
    const task = await s.task("a");
    return !("dueAt" in task) || (task.dueAt ?? 0) < Date.now() - 200;
  });
  if (before === 1) expect(begun).toEqual(["a 1"]);
  expect(begun.length).toBe(before);
  await s.resume();
  await until("both are done", async () => (await s.task("b")).state === "completed");
  s.stop();
  await served;
  expect(begun).toEqual(["a 1", "a 2", "b 1"]);
});

test("a function that is woken takes nothing; and tasks cost no read, however many there are", async () => {
  await using s = await stage(agentOf(({ id }) => id));
  for (const id of ["a", "b", "c", "d", "e"]) await s.submit({}, { id });
  await pauseAgent(s.deps, AGENT);
  for (const mode of ["idle", "drain"] as const) expect(await s.serve(mode)).toEqual({});
  expect(await s.state()).toEqual({ pending: 5, inFlight: 0 });
  await resumeAgent(s.deps, AGENT);
  s.asked.records = 0;
  expect(await s.serve("idle")).toEqual({ completed: 5 });
  expect(s.asked.records).toBe(1);
});

test("while the store does not answer it stays as it was; and what is no pause pauses nothing", async () => {
  await using s = await stage(agentOf(({ id }) => id));
  await pauseAgent(s.deps, AGENT);
  const served = s.serve();
  await s.says("agent.paused");
  s.asked.isAway = true;
  await resumeAgent(s.deps, AGENT);
  const before = s.asked.records;
  s.look();
  // Then every second, until it answers.
  await until("it has looked again", async () => s.asked.records > before + 1);
  expect(s.deps.logged.filter(({ event }) => event === "agent.resumed")).toEqual([]);
  s.asked.isAway = false;
  await s.says("agent.resumed");
  s.stop();
  expect(await served).toEqual({});
  // An agent's own part may be written by whoever has its identity.
  for (const text of ["", "[]", '{"at":"x","by":"y"}', '{"at":1}'])
    expect(await pauseOf({ getRecord: async () => ({ text, revision: "1" }) }, AGENT), text).toBeUndefined();
});

describe.each(oneOfEach)("$kind", ({ kind, here }) => {
  test.skipIf(!here)(
    "two people at once: each sees what the other did, and the last one's word stands",
    async () => {
      const { config } = world(nats, kind, { isolation: kind === "nats-kv" ? "documents" : "shared" });
      await using one = await wired(config);
      await using two = await wired(config);
      const as = (deps: Deps, name: string): Deps => ({ ...deps, actor: { name, via: "cli" } });
      const [ann, bob] = [as(one, "ann"), as(two, "bob")];
      const paused = await Promise.all([pauseAgent(ann, AGENT, "first"), pauseAgent(bob, AGENT, "second")]);
      const winner = await pauseOf(one.store, AGENT);
      expect(paused.map((change) => change.paused)).toEqual([winner, winner]);
      expect(paused.filter(({ before }) => before === undefined)).toHaveLength(1);
      expect(await pauseOf(one.store, "other")).toBeUndefined();
      // Of the two that meet one is first, and the other has seen it.
      const [resumed, again] = await Promise.all([resumeAgent(ann, AGENT), pauseAgent(bob, AGENT, "again")]);
      expect(resumed).toEqual({ before: winner });
      const now = await pauseOf(two.store, AGENT);
      expect(now).toEqual(again.before ? undefined : again.paused);
      await resumeAgent(ann, AGENT);
      expect(await resumeAgent(bob, AGENT)).toEqual({});
      expect(await pauseOf(two.store, AGENT)).toBeUndefined();
    },
  );
});
