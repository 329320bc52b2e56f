import { jetstreamManager } from "@nats-io/jetstream";
import { expect, test } from "vitest";
import { cuttingProxy } from "../../infra/drills/faults/proxy.ts";
import { defineAgent } from "../../shared/agent.ts";
import { serve } from "../../shared/runner/serve.ts";
import { consumerName, streamName } from "../../shared/task/names.ts";
import { AGENT, type Bench, bench } from "../support/bench.ts";
import { testNats, wired } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

/** A handler that works until it is told to finish. */
function slowAgent() {
  const starts: string[] = [];
  const finish = Promise.withResolvers<string>();
  const agent = defineAgent({
    run: ({ id }) => {
      starts.push(id);
      return finish.promise;
    },
  });
  return { agent, starts, finish: () => finish.resolve("by the first") };
}

/** What a killed server does now and then: it forgets a delivery, and so repeats it while the holder is well. */
async function forgetDeliveries(b: Bench): Promise<void> {
  const jsm = await jetstreamManager(b.deps.nc);
  await jsm.consumers.delete(streamName(b.queue), consumerName(b.queue));
  await b.deps.bus.ensure(b.queue);
}

const never = new AbortController().signal;

test("a delivery that is repeated while its holder is well is held, not run, until the holder is done", async () => {
  await using nats = await testNats();
  const { agent, starts, finish } = slowAgent();
  await using b = await bench(nats, "nats-kv", agent, { ackWait: 4_000 });
  await b.submit({}, { id: "t" });
  const first = serve(b.deps, { name: AGENT, agent, mode: "once", stop: never });
  await until("the first runs", async () => starts.length > 0);
  await forgetDeliveries(b);

  await using other = await wired(b.world.config);
  const second = serve(other, { name: AGENT, agent, mode: "once", stop: never });
  await until("it is delivered again", async () => (await b.deps.bus.state(b.queue)).inFlight === 1);
  // Several heartbeats of both, all for the same message.
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  finish();
  expect(await first).toEqual({ completed: 1 });
  expect(await second).toEqual({ skipped: 1 });
  expect(await b.task("t")).toMatchObject({
    state: "completed",
    result: "by the first",
    fence: 1,
    executions: 1,
  });
  expect(starts).toEqual(["t"]);
});

test("a holder whose server was restarted gets time to connect again before it is taken for dead", async () => {
  await using nats = await testNats();
  await using proxy = await cuttingProxy(nats.url);
  const { agent, starts, finish } = slowAgent();
  await using b = await bench(nats, "nats-kv", agent, { ackWait: 6_000 });
  await b.submit({}, { id: "t" });
  await using held = await wired({ ...b.world.config, nats: { url: proxy.url } });
  const first = serve(held, { name: AGENT, agent, mode: "once", stop: never });
  await until("the first runs", async () => starts.length > 0);
  proxy.cut(true);
  await forgetDeliveries(b);

  const elsewhere = { ...b.deps, bus: { ...b.deps.bus, serverId: () => "the server's next life" } };
  const second = serve(elsewhere, { name: AGENT, agent, mode: "once", stop: never });
  await until("it is delivered again", async () => (await b.deps.bus.state(b.queue)).inFlight === 1);
  await new Promise((resolve) => setTimeout(resolve, 1_000));
  proxy.cut(false);
  await new Promise((resolve) => setTimeout(resolve, 4_000));
  finish();
  expect(await first).toEqual({ completed: 1 });
  expect(await second).toEqual({ skipped: 1 });
  expect(await b.task("t")).toMatchObject({ state: "completed", fence: 1, executions: 1 });
  expect(starts).toEqual(["t"]);
});
