import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { wire } from "../../functions/wiring/wire.node.ts";
import { cuttingProxy } from "../../infra/drills/faults/proxy.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { subjectPrefix } from "../../shared/task/names.ts";
import { message, next } from "../support/servers/bus.ts";
import { testNats, world } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

describe("a connection that breaks", () => {
  test("an ack whose reply was lost is confirmed when it is repeated", async () => {
    await using proxy = await cuttingProxy(nats.url);
    const { config } = world(nats, "nats-kv", { requestTimeout: 1_000 });
    const deps = await wire({ ...config, nats: { url: proxy.url } }, () => {});
    const queue = { namespace: config.settings.namespace, agent: "a", lane: 0, generation: 1 };
    await deps.bus.ensure(queue);
    await deps.bus.publish(queue, message("a"));
    const held = await next(deps, queue);
    proxy.swallowReplies(true);
    await expect(held.ack()).rejects.toMatchObject({ code: "bus_unavailable" });
    proxy.swallowReplies(false);
    await until("the ack is confirmed", () =>
      held.ack().then(
        () => true,
        () => false,
      ),
    );
    await until("the queue is empty", async () => {
      const state = await deps.bus.state(queue).catch(() => undefined);
      return state?.pending === 0 && state.inFlight === 0;
    });
    await deps.bus.close();
  });

  test("a request whose connection breaks fails at once, and the next one goes out when it is back", async () => {
    await using proxy = await cuttingProxy(nats.url);
    const { config } = world(nats, "nats-kv", { requestTimeout: 19_000 });
    const deps = await wire({ ...config, nats: { url: proxy.url } }, () => {});
    const queue = { namespace: config.settings.namespace, agent: "a", lane: 0, generation: 1 };
    await deps.bus.ensure(queue);
    await deps.bus.publish(queue, message("a"));
    const held = await next(deps, queue);
    for (const ask of [
      () => held.working(),
      () => deps.bus.lookup(queue, "a"),
      () => deps.store.get("nobody"),
    ]) {
      const begun = Date.now();
      proxy.stall(true);
      const asked = ask().catch((error: { code: string }) => error.code);
      await new Promise((resolve) => setTimeout(resolve, 100));
      proxy.cut(true);
      expect(await asked).toMatch(/_unavailable$/);
      // Made while there is no connection: it waits for one instead of being lost.
      const again = ask();
      proxy.stall(false);
      proxy.cut(false);
      await again;
      expect(Date.now() - begun).toBeLessThan(15_000);
    }
    await deps.bus.close();
  });
});

test("an unreachable server, and a refused identity, are told apart and name what to check", async () => {
  const { config } = world(nats, "nats-kv");
  const nowhere = { ...config, nats: { url: "nats://127.0.0.1:1" } };
  const error = await wire(nowhere, () => {}).catch((e: Error) => e);
  expect(error).toMatchObject({ code: "bus_unavailable", message: expect.stringContaining("NATS_URL") });
});

test("of several servers, one that is there is used", async () => {
  const { config } = world(nats, "nats-kv");
  for (const url of [nats.url, nats.wsUrl]) {
    const [scheme] = url.split(":");
    const deps = await wire({ ...config, nats: { url: `${scheme}://127.0.0.1:1, ${url}` } }, () => {});
    expect(await deps.bus.queues()).toEqual([]);
    await deps[Symbol.asyncDispose]();
  }
});

test("a server that is slow to greet is waited for, however short the lease", async () => {
  await using proxy = await cuttingProxy(nats.url);
  const { config } = world(nats, "nats-kv", { ackWait: 1_000 });
  proxy.stall(true);
  setTimeout(() => proxy.stall(false), 1_000);
  const deps = await wire({ ...config, nats: { url: proxy.url } }, () => {});
  await deps[Symbol.asyncDispose]();
});

test("WebSocket works as TCP does", async () => {
  const { config } = world(nats, "nats-kv");
  const deps = await wire({ ...config, nats: { url: nats.wsUrl } }, () => {});
  const queue = { namespace: config.settings.namespace, agent: "a", lane: 0, generation: 1 };
  await deps.bus.ensure(queue);
  const id = randomUUID();
  await deps.bus.publish(queue, message(id));
  const held = await next(deps, queue);
  expect(held.subject).toBe(subjectPrefix(queue) + id);
  await held.ack();
  await deps.bus.close();
});
