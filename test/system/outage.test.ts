import { describe, expect, test } from "vitest";
import { cuttingProxy } from "../../infra/drills/faults/proxy.ts";
import { defineAgent } from "../../shared/agent.ts";
import { PawlError } from "../../shared/errors/errors.ts";
import { serve } from "../../shared/runner/serve.ts";
import { AGENT, bench } from "../support/bench.ts";
import { emulatorHost, hasEmulator, testNats, wired } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

describe.each(["firestore", "firestore-rest"] as const)("%s: the store is away", (store) => {
  test.skipIf(!hasEmulator)(
    "when a message arrives: put back after a lease and not run, until it is back",
    async () => {
      await using nats = await testNats();
      await using proxy = await cuttingProxy(emulatorHost);
      const runs: string[] = [];
      const agent = defineAgent({ run: ({ id }) => void runs.push(id) });
      await using b = await bench(nats, store, agent, { ackWait: 1_500 });
      await b.submit({}, { id: "held" });
      await using away = await wired({ ...b.world.config, emulatorHost: proxy.host });
      proxy.cut(true);
      const stop = new AbortController();
      const served = serve(away, { name: AGENT, agent, mode: "forever", stop: stop.signal });
      await until("it lets go", async () => away.logged.some(({ fields }) => fields.as === "store-away"));
      await until("it says so", async () => away.logged.some(({ event }) => event === "store.away"));
      expect(runs).toEqual([]);
      const { pending, inFlight } = await b.deps.bus.state(b.queue);
      expect(pending + inFlight).toBe(1);
      proxy.cut(false);
      await until("it is completed", async () => (await b.task("held")).state === "completed");
      stop.abort(new Error("told to stop"));
      // Its client may need a while to come back, and another message put back.
      expect(await served).toEqual({ "store-away": expect.any(Number), completed: 1 });
      expect(runs).toEqual(["held"]);
      // A claim that was not answered may have been kept by the client, and written when the store was back: taken over.
      const { fence, history } = await b.task("held");
      expect(fence).toBeLessThanOrEqual(2);
      expect(history.filter(({ event }) => event === "complete")).toHaveLength(1);
    },
  );
});

test("cut off from NATS for longer than the lease: the handler is aborted, nothing is written, the next one goes on", async () => {
  await using nats = await testNats();
  await using proxy = await cuttingProxy(nats.url);
  const events: string[] = [];
  const slow = defineAgent({
    run: ({ signal }) =>
      new Promise((resolve, reject) => {
        events.push("started");
        const timer = setTimeout(() => resolve("late"), 8_000);
        signal.addEventListener("abort", () => {
          clearTimeout(timer);
          events.push(`aborted: ${(signal.reason as { code?: string }).code}`);
          reject(signal.reason);
        });
      }),
  });
  const quick = defineAgent({ run: () => "by the second" });
  await using b = await bench(nats, "nats-kv", quick, { ackWait: 1_500 });
  await b.submit({}, { id: "t" });
  await using cutOff = await wired({ ...b.world.config, nats: { url: proxy.url } });
  const stop = new AbortController();
  const first = serve(cutOff, { name: AGENT, agent: slow, mode: "forever", stop: stop.signal });
  await until("the first runs", async () => events.includes("started"));
  proxy.stall(true);
  expect(await b.drain()).toEqual({ completed: 1 });
  const aborted = [...events];
  proxy.stall(false);
  await sleep(2_000);
  stop.abort(new Error("told to stop"));
  await first;
  expect(aborted).toEqual(["started", "aborted: lease_lost"]);
  const task = await b.task("t");
  expect(task).toMatchObject({ state: "completed", result: "by the second", fence: 2, executions: 2 });
  expect(task.history.map((entry) => entry.event)).toEqual([
    "submit",
    "claim",
    "takeover",
    "start",
    "complete",
  ]);
});

test("an answer that is lost, of the claim and of the completion, is found again by its stamp", async () => {
  await using nats = await testNats();
  const agent = defineAgent({ run: () => "done" });
  await using b = await bench(nats, "nats-kv", agent);
  await b.submit({}, { id: "t" });
  const store = b.deps.store;
  const lost = new PawlError("store_unavailable", "the answer was lost");
  const forgetful = {
    ...store,
    // Every write is done, and none is answered.
    replace: async (...args: Parameters<typeof store.replace>) => {
      await store.replace(...args);
      throw lost;
    },
  };
  const deps = { ...b.deps, store: forgetful };
  expect(
    await serve(deps, { name: AGENT, agent, mode: "drain", stop: new AbortController().signal }),
  ).toEqual({ completed: 1 });
  const task = await b.task("t");
  expect(task).toMatchObject({ state: "completed", fence: 1, executions: 1 });
  expect(task.history.map((entry) => entry.event)).toEqual(["submit", "claim", "complete"]);
});

test("a store that refuses for a while (a role that was removed) is waited for, with the message held", async () => {
  await using nats = await testNats();
  const runs: string[] = [];
  const agent = defineAgent({ run: ({ id }) => void runs.push(id) });
  await using b = await bench(nats, "nats-kv", agent);
  await b.submit({}, { id: "t" });
  let refusals = 0;
  const replace: typeof b.deps.store.replace = async (...args) => {
    if (++refusals <= 3) throw new PawlError("store_refused", "PERMISSION_DENIED");
    return b.deps.store.replace(...args);
  };
  const deps = { ...b.deps, store: { ...b.deps.store, replace } };
  expect(
    await serve(deps, { name: AGENT, agent, mode: "drain", stop: new AbortController().signal }),
  ).toEqual({ completed: 1 });
  expect(b.deps.logged.map(({ event }) => event)).toContain("store.refused");
  expect(runs).toEqual(["t"]);
});

test("a connection that is closed for good ends the runner, instead of leaving it idle for ever", async () => {
  await using nats = await testNats();
  const agent = defineAgent({ run: () => 1 });
  await using b = await bench(nats, "nats-kv", agent);
  const deps = await wired(b.world.config);
  const served = serve(deps, { name: AGENT, agent, mode: "forever", stop: new AbortController().signal });
  await sleep(200);
  await deps.nc.close();
  await expect(served).rejects.toMatchObject({
    code: "bus_refused",
    message: expect.stringContaining("closed for good"),
  });
});
