import { describe, expect, test } from "vitest";
import { type Wired, wire } from "../../functions/wiring/wire.node.ts";
import { cuttingProxy } from "../../infra/drills/faults/proxy.ts";
import { defineAgent } from "../../shared/agent.ts";
import { ensureQueue } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import { AGENT, bench } from "../support/bench.ts";
import { message } from "../support/servers/bus.ts";
import { type Logged, testNats, world } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

/**
 * What a client sees of an R3 cluster that is choosing a leader: requests that nobody answers, from a server that says
 * that it has JetStream. One server does the same when JetStream is switched off while it runs.
 */
const OFF = "jetstream: disabled";
const BOTH = /choosing a leader.* account may not use JetStream/;
const agent = defineAgent({ run: () => 1 });

/** Looks at the clock are seconds apart: the patience is over soon. */
function hasty(deps: Wired): Deps {
  let time = 0;
  return { ...deps, clock: { ...deps.clock, monotonic: () => (time += 4_000), sleep: async () => {} } };
}

describe("JetStream does not answer, on a server that has it", () => {
  test("submits wait, say what they see if it lasts, and go through when it is back", async () => {
    await using nats = await testNats();
    await using b = await bench(nats, "nats-kv", agent, { requestTimeout: 1_000 });
    await nats.reload(OFF);
    const said = () => b.deps.logged.find(({ event }) => event === "store.unavailable");
    const wanted = { agent: AGENT, lanes: 1, input: {} };
    await until("nobody answers", async () =>
      b.deps.store.get("x").then(
        () => false,
        () => true,
      ),
    );
    await expect(submit(hasty(b.deps), { ...wanted, id: "given-up" })).rejects.toMatchObject({
      code: "store_unavailable",
      message: expect.stringMatching(BOTH),
    });
    await expect(b.deps.bus.ensure(b.queue)).rejects.toMatchObject({ code: "bus_unavailable" });
    await expect(b.deps.bus.publish(b.queue, message("x"))).rejects.toMatchObject({
      code: "queue_missing",
      message: expect.stringMatching(BOTH),
    });
    b.deps.logged.length = 0;
    const submitted = submit(b.deps, { ...wanted, id: "t" });
    const ensured = ensureQueue(b.deps, b.queue, "correct");
    await until("it waits", async () => said() !== undefined);
    await nats.reload("");
    expect(await submitted).toMatchObject({ kind: "accepted", state: "dispatched" });
    expect(await ensured).toEqual([]);
    expect(await b.drain()).toEqual({ completed: 1 });
  });

  test("who connects then waits as well", async () => {
    await using nats = await testNats({ config: OFF });
    await using proxy = await cuttingProxy(nats.url);
    proxy.greet((info) => info.replace("INFO {", 'INFO {"jetstream":true,'));
    const { config } = world(nats, "nats-kv", { requestTimeout: 1_000 });
    const logged: Logged[] = [];
    const connecting = wire({ ...config, nats: { url: proxy.url } }, (level, event, fields = {}) => {
      logged.push({ level, event, fields });
    });
    await until("it waits", async () => logged.length > 0);
    expect(logged[0]).toMatchObject({
      event: "store.unavailable",
      fields: { reason: expect.stringMatching(BOTH) },
    });
    await nats.reload("");
    await using deps = await connecting;
    expect(await deps.store.get("nobody")).toBeUndefined();
  });
});

test("a server that says itself that it has no JetStream is refused at once, with what to do", async () => {
  await using nats = await testNats({ config: OFF });
  const advice = {
    message: expect.stringContaining("JetStream is off on this server. Start nats-server with -js"),
  };
  const { config } = world(nats, "nats-kv");
  const logged: string[] = [];
  const connecting = wire(config, (_, event) => void logged.push(event));
  await expect(connecting).rejects.toMatchObject({ code: "store_refused", ...advice });
  const other = { ...config, store: "firestore-rest", project: "p", emulatorHost: "127.0.0.1:1" } as const;
  await using deps = await wire(other, (_, event) => void logged.push(event));
  const queue = { namespace: config.settings.namespace, agent: AGENT, lane: 0, generation: 1 };
  await expect(ensureQueue(deps, queue, "correct")).rejects.toMatchObject({ code: "bus_refused", ...advice });
  await expect(deps.bus.publish(queue, message("x"))).rejects.toMatchObject({
    code: "bus_refused",
    ...advice,
  });
  expect(logged).toEqual([]);
});
