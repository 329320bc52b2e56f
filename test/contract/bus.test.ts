import { randomUUID } from "node:crypto";
import { jetstreamManager } from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Wired, wire } from "../../functions/wiring/wire.node.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { consumerName, type Queue, streamName, subjectPrefix } from "../../shared/task/names.ts";
import { cuttingProxy } from "../support/faults/proxy.ts";
import { busOn, message, next } from "../support/servers/bus.ts";
import { testNats, world } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

describe("publish", () => {
  let deps: Wired;
  let queue: Queue;
  beforeAll(async () => {
    ({ deps, queue } = await busOn(nats, { duplicateWindow: 1_000, queueBytes: 4_000, inputLimit: 1_000 }));
    await deps.bus.ensure(queue);
  });
  afterAll(() => deps.bus.close());
  beforeEach(async () => {
    await (await jetstreamManager(deps.nc)).streams.purge(streamName(queue));
  });

  test("the same Msg-Id inside the window is a duplicate, also after the message is gone", async () => {
    const first = await deps.bus.publish(queue, message("a"));
    expect(first.kind).toBe("stored");
    expect(await deps.bus.publish(queue, message("a"))).toEqual({ ...first, kind: "duplicate" });
    await (await next(deps, queue)).ack();
    expect(await deps.bus.publish(queue, message("a"))).toEqual({ ...first, kind: "duplicate" });
  });

  test("another Msg-Id while the message is there finds the subject occupied, in flight too", async () => {
    await deps.bus.publish(queue, message("b"));
    expect(await deps.bus.publish(queue, message("b", "other"))).toEqual({ kind: "occupied" });
    const held = await next(deps, queue);
    expect(await deps.bus.publish(queue, message("b", "other"))).toEqual({ kind: "occupied" });
    expect((await deps.bus.lookup(queue, "b"))?.headers.get("Pawl-Dispatch")).toBe("1");
    await held.ack();
    expect(await deps.bus.lookup(queue, "b")).toBeUndefined();
    // A refused Msg-Id was not remembered.
    expect((await deps.bus.publish(queue, message("b", "other"))).kind).toBe("stored");
  });

  test("a full queue is told apart from an occupied subject", async () => {
    const big = { ...message("big"), data: new Uint8Array(3_500) };
    expect((await deps.bus.publish(queue, big)).kind).toBe("stored");
    await expect(deps.bus.publish(queue, { ...big, taskId: "big2", msgId: "x" })).rejects.toMatchObject({
      code: "queue_full",
    });
    expect(await deps.bus.publish(queue, { ...big, msgId: "y" })).toEqual({ kind: "occupied" });
  });

  test("no stream, and a message over the server's limit, say what to do", async () => {
    await expect(deps.bus.publish({ ...queue, agent: "nobody" }, message("a"))).rejects.toMatchObject({
      code: "queue_missing",
      message: expect.stringContaining("no stream takes"),
    });
    const huge = { ...message("huge"), data: new Uint8Array(2 * 1024 * 1024) };
    await expect(deps.bus.publish(queue, huge)).rejects.toMatchObject({
      code: "bus_refused",
      message: expect.stringContaining("max_payload"),
    });
  });
});

describe("deliver", () => {
  test("one at a time; a pull that already waits is served when the ack comes", async () => {
    const { deps, queue } = await busOn(nats);
    await deps.bus.ensure(queue);
    for (const id of ["a", "b"]) await deps.bus.publish(queue, message(id));
    const first = await next(deps, queue);
    const waiting = deps.bus.pull(queue, 5_000);
    let served = false;
    void waiting.delivery.then(() => {
      served = true;
    });
    await first.working();
    expect(await deps.bus.state(queue)).toEqual({ pending: 1, inFlight: 1 });
    expect(served).toBe(false);
    await first.ack();
    expect((await waiting.delivery)?.seq).toBe(2);
    await deps.bus.close();
  });

  test("a withdrawn pull swallows no message", async () => {
    const { deps, queue } = await busOn(nats);
    await deps.bus.ensure(queue);
    const withdrawn = deps.bus.pull(queue, 5_000);
    await new Promise((resolve) => setTimeout(resolve, 100));
    await withdrawn.cancel();
    expect(await withdrawn.delivery).toBeUndefined();
    await deps.bus.publish(queue, message("a"));
    expect((await next(deps, queue)).redelivered).toBe(false);
    await deps.bus.close();
  });

  test("a heartbeat postpones the redelivery; the newest delivery alone is current", async () => {
    const { deps, queue } = await busOn(nats, { ackWait: 3_000 });
    await deps.bus.ensure(queue);
    await deps.bus.publish(queue, message("a"));
    const first = await next(deps, queue);
    for (let beat = 0; beat < 5; beat++) {
      await new Promise((resolve) => setTimeout(resolve, 800));
      await first.working();
      expect(await first.current()).toBe(true);
    }
    const second = await next(deps, queue);
    expect(second).toMatchObject({ redelivered: true, seq: first.seq });
    expect(await first.current()).toBe(false);
    expect(await second.current()).toBe(true);
    // The broker would take the stale holder's word; only the check before tells.
    await expect(first.working()).resolves.toBeUndefined();
    await deps.bus.close();
  });

  test("a cut ack_wait is told and ends no hold; a removed consumer does", async () => {
    const { deps, queue } = await busOn(nats, { ackWait: 10_000 });
    await deps.bus.ensure(queue);
    await deps.bus.publish(queue, message("a"));
    const drifts: string[] = [];
    const held = await deps.bus.pull(queue, 30_000, (drift) => void drifts.push(drift)).delivery;
    if (!held) throw new Error("nothing was delivered");
    expect(await held.current()).toBe(true);
    expect(drifts).toEqual([]);
    const jsm = await jetstreamManager(deps.nc);
    const update = { ack_wait: nanos(2_000), max_deliver: 3, max_ack_pending: 2 };
    await jsm.consumers.update(streamName(queue), consumerName(queue), update);
    expect(await held.current()).toBe(true);
    expect(drifts.join()).toMatch(
      /ack_wait is 2s and should be 10s; max_deliver is 3 and should be 1000; max_ack_pending is 2 and should be 1/,
    );
    await jsm.consumers.delete(streamName(queue), consumerName(queue));
    expect(await held.current()).toBe(false);
    // The first pull finds nobody answering, the next asks and learns that it is gone.
    await expect(deps.bus.pull(queue, 1_000).delivery).rejects.toMatchObject({ code: "bus_unavailable" });
    await expect(deps.bus.pull(queue, 1_000).delivery).rejects.toMatchObject({ code: "bus_refused" });
    await deps.bus.close();
  });

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

  test("a nak comes back at once, or after its delay, and holds its place meanwhile", async () => {
    const { deps, queue } = await busOn(nats);
    await deps.bus.ensure(queue);
    for (const id of ["a", "b"]) await deps.bus.publish(queue, message(id));
    await (await next(deps, queue)).nak(0);
    const again = await next(deps, queue);
    expect(again).toMatchObject({ seq: 1, redelivered: true });
    const sent = Date.now();
    await again.nak(700);
    expect((await next(deps, queue)).seq).toBe(1);
    expect(Date.now() - sent).toBeGreaterThanOrEqual(690);
    await deps.bus.close();
  });
});

test("an unreachable server, and a refused identity, are told apart and name what to check", async () => {
  const { config } = world(nats, "nats-kv");
  const nowhere = { ...config, nats: { url: "nats://user:secret@127.0.0.1:1" } };
  const error = await wire(nowhere, () => {}).catch((e: Error) => e);
  expect(error).toMatchObject({ code: "bus_unavailable", message: expect.stringContaining("NATS_URL") });
  expect((error as Error).message).not.toContain("secret");
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
