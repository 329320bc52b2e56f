import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import { expect, test } from "vitest";
import { wire } from "../../functions/wiring/wire.node.ts";
import { defineAgent } from "../../shared/agent.ts";
import { buryGivenUp } from "../../shared/dispatch/advisories.ts";
import { serve } from "../../shared/runner/serve.ts";
import { consumerName, type Queue, streamName } from "../../shared/task/names.ts";
import { AGENT, bench, untilAborted } from "../support/bench.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

const consumerOf = async (jsm: JetStreamManager, queue: Queue) =>
  (await jsm.consumers.info(streamName(queue), consumerName(queue))).config;

test("a consumer that is changed under a long task is named and corrected, and the task is done", async () => {
  await using nats = await testNats();
  let starts = 0;
  const done = Promise.withResolvers<string>();
  const agent = defineAgent({
    run: ({ signal }) => {
      starts++;
      return Promise.race([done.promise, untilAborted(signal)]);
    },
  });
  await using b = await bench(nats, "nats-kv", agent, { ackWait: 3_000 });
  await using other = await wired(b.world.config);
  const stop = new AbortController();
  const runners = [b.deps, other].map((deps) =>
    serve(deps, { name: AGENT, agent, mode: "forever", stop: stop.signal }),
  );
  await b.submit({}, { id: "long" });
  await until("it runs", async () => starts > 0);

  const jsm = await jetstreamManager(b.deps.nc);
  const wrong = { ack_wait: nanos(1_000), max_deliver: 2 };
  await jsm.consumers.update(streamName(b.queue), consumerName(b.queue), wrong);
  const right = { ack_wait: nanos(3_000), max_deliver: 1000, max_ack_pending: 1 };
  await until("it is corrected", async () => (await consumerOf(jsm, b.queue)).ack_wait === right.ack_wait);
  expect(await consumerOf(jsm, b.queue)).toMatchObject(right);
  const drifts = [...b.deps.logged, ...other.logged].filter(({ event }) => event === "queue.drifted");
  expect(drifts[0]).toMatchObject({
    level: "error",
    fields: { drift: "ack_wait is 1s and should be 3s; max_deliver is 2 and should be 1000" },
  });

  // What a dispatcher would make of a message that the server gave up on.
  await buryGivenUp(b.deps, stop.signal);
  done.resolve("done");
  await until("it is completed", async () => (await b.task("long")).state === "completed");
  stop.abort(new Error("told to stop"));
  const [a = {}, z = {}] = await Promise.all(runners);
  expect((a.completed ?? 0) + (z.completed ?? 0)).toBe(1);
  const task = await b.task("long");
  expect(task.history.filter(({ event }) => event === "complete")).toHaveLength(1);
  expect(task.executions).toBe(starts);
});

test.each(["idle", "drain"] as const)(
  "a consumer that is wrong from the start is corrected before the first pull: %s",
  async (mode) => {
    await using nats = await testNats();
    const agent = defineAgent({ run: () => 1 });
    await using b = await bench(nats, "nats-kv", agent);
    await b.submit({}, { id: "t" });
    const jsm = await jetstreamManager(b.deps.nc);
    const wrong = { ack_wait: nanos(1_000), max_deliver: 2, max_ack_pending: 5 };
    await jsm.consumers.update(streamName(b.queue), consumerName(b.queue), wrong);
    const found: unknown[] = [];
    const pull: typeof b.deps.bus.pull = (...args) => {
      const asked = consumerOf(jsm, b.queue).then((config) => found.push(config));
      return {
        delivery: asked.then(() => b.deps.bus.pull(...args).delivery),
        cancel: async () => {},
      };
    };
    const deps = { ...b.deps, bus: { ...b.deps.bus, pull } };
    expect(await serve(deps, { name: AGENT, agent, mode, stop: new AbortController().signal })).toEqual({
      completed: 1,
    });
    expect(found[0]).toMatchObject({ ack_wait: nanos(30_000), max_deliver: 1000, max_ack_pending: 1 });
  },
);

test.each(["idle", "forever"] as const)(
  "who may not correct it says so when it starts, and pulls nothing: %s",
  async (mode) => {
    const denied = '["$JS.API.CONSUMER.CREATE.>", "$JS.API.CONSUMER.DURABLE.CREATE.>"]';
    const users = `authorization { users: [
      { user: admin, password: p }
      { user: runner, password: p, permissions: { publish: { deny: ${denied} } } }
    ] }`;
    await using nats = await testNats({ config: users });
    const w = world(nats, "nats-kv", { requestTimeout: 2_000 });
    const as = (user: string) =>
      wire({ ...w.config, nats: { url: nats.url, user, password: "p" } }, () => {});
    await using admin = await as("admin");
    const queue = { namespace: w.config.settings.namespace, agent: AGENT, lane: 0, generation: 1 };
    await admin.bus.ensure(queue);
    const jsm = await jetstreamManager(admin.nc);
    await jsm.consumers.update(streamName(queue), consumerName(queue), { ack_wait: nanos(1_000) });
    await using deps = await as("runner");
    let pulls = 0;
    const pull: typeof deps.bus.pull = (...args) => {
      pulls++;
      return deps.bus.pull(...args);
    };
    const agent = defineAgent({ run: () => 1 });
    const limited = { ...deps, bus: { ...deps.bus, pull } };
    const served = serve(limited, { name: AGENT, agent, mode, stop: new AbortController().signal });
    await expect(served).rejects.toMatchObject({
      code: "bus_refused",
      message: expect.stringMatching(/ack_wait is 1s and should be 30s; correcting it: .*permission/i),
    });
    expect(pulls).toBe(0);
  },
);
