import { jetstreamManager } from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type StoreKind, storeIdentity } from "../../functions/wiring/config.ts";
import type { Wired } from "../../functions/wiring/wire.node.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { jetstreamBus } from "../../shared/adapters/jetstream/jetstream.ts";
import { makeSettings } from "../../shared/settings/settings.ts";
import { consumerName, streamName, subjectPrefix } from "../../shared/task/names.ts";
import { busOn, message, next } from "../support/servers/bus.ts";
import { testNats } from "../support/servers/stores.ts";

/** The same queues, for a deployment that has its documents elsewhere. */
const otherBus = ({ nc, settings }: Wired) => jetstreamBus(nc, settings, "firestore:shop:pawl");

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

describe("the store that a queue belongs to", () => {
  const STORE = "pawl-store";
  const owner = async ({ deps, queue }: Awaited<ReturnType<typeof busOn>>) => {
    const { config } = await (await jetstreamManager(deps.nc)).streams.info(streamName(queue));
    return config.metadata?.[STORE];
  };

  test("is written when it is made, and where it says nothing", async () => {
    const one = await busOn(nats);
    const { deps, queue } = one;
    const mine = `nats-kv:${queue.namespace}`;
    await deps.bus.ensure(queue, "create");
    expect(await owner(one)).toBe(mine);
    const jsm = await jetstreamManager(deps.nc);
    for (const how of ["create", "correct"] as const) {
      await jsm.streams.update(streamName(queue), { metadata: { whose: "ours" } });
      expect((await deps.bus.ensure(queue, how))[0]).toBe(
        `corrected stream ${streamName(queue)}: ${STORE} was unset, is "${mine}"`,
      );
      expect(await owner(one)).toBe(mine);
      expect((await jsm.streams.info(streamName(queue))).config.metadata).toMatchObject({ whose: "ours" });
    }
    await deps.bus.close();
  });

  test("is not another's: a clear error, and nothing is changed", async () => {
    const { deps, queue } = await busOn(nats);
    await (await otherBus(deps)).ensure(queue);
    const jsm = await jetstreamManager(deps.nc);
    await jsm.consumers.delete(streamName(queue), consumerName(queue));
    await jsm.streams.update(streamName(queue), { duplicate_window: nanos(1_000) });
    const before = (await jsm.streams.info(streamName(queue))).config;
    for (const how of ["create", "correct"] as const)
      await expect(deps.bus.ensure(queue, how)).rejects.toMatchObject({
        code: "stores_differ",
        message: expect.stringMatching(/in firestore:shop:pawl, .* in nats-kv:.*PAWL_NAMESPACE/),
      });
    expect((await jsm.streams.info(streamName(queue))).config).toEqual(before);
    expect((await deps.bus.inspect(queue)).consumer).toBeUndefined();
    await deps.bus.close();
  });

  test("is the same for both ways to Firestore, and another for each project and namespace", () => {
    const config = (store: StoreKind, project: string, namespace = "pawl", emulatorHost?: string) =>
      storeIdentity({
        settings: makeSettings({ namespace }),
        nats: { url: nats.url },
        store,
        project,
        ...(emulatorHost && { emulatorHost }),
      });
    expect(config("firestore", "a")).toBe(config("firestore-rest", "a"));
    const others = [
      config("firestore", "a"),
      config("firestore", "b"),
      config("firestore", "a", "pawl2"),
      config("firestore", "a", "pawl", "127.0.0.1:1"),
      config("nats-kv", "a"),
      config("nats-kv", "a", "pawl2"),
    ];
    expect(new Set(others).size).toBe(others.length);
  });
});

describe("ensure", () => {
  test("creates a stream and a consumer as designed, and changes nothing the second time", async () => {
    const { deps, queue } = await busOn(nats);
    expect(await deps.bus.ensure(queue)).toHaveLength(3);
    expect(await deps.bus.ensure(queue)).toEqual([]);
    const jsm = await jetstreamManager(deps.nc);
    const { config } = await jsm.streams.info(streamName(queue));
    expect(config).toMatchObject({
      subjects: [`${subjectPrefix(queue)}*`],
      retention: "workqueue",
      storage: "file",
      max_age: 0,
      max_msgs_per_subject: 1,
      discard: "new",
      discard_new_per_subject: true,
      duplicate_window: nanos(120_000),
    });
    const consumer = (await jsm.consumers.info(streamName(queue), consumerName(queue))).config;
    expect(consumer).toMatchObject({
      ack_policy: "explicit",
      ack_wait: nanos(30_000),
      max_ack_pending: 1,
      max_deliver: 1000,
    });
    expect(consumer.filter_subject ?? "").toBe("");
    expect(consumer.backoff ?? []).toEqual([]);
    expect(consumer.inactive_threshold ?? 0).toBe(0);
    await deps.bus.close();
  });

  test("two at once are harmless", async () => {
    const { deps, queue } = await busOn(nats);
    const results = await Promise.all(Array.from({ length: 8 }, () => deps.bus.ensure(queue)));
    expect(results).toHaveLength(8);
    expect(await deps.bus.ensure(queue)).toEqual([]);
    await deps.bus.close();
  });

  test("drift is corrected field by field and named, with messages and ack state kept", async () => {
    const { deps, queue } = await busOn(nats, { ackWait: 20_000 });
    await deps.bus.ensure(queue);
    await deps.bus.publish(queue, message("kept"));
    const held = await next(deps, queue);
    const jsm = await jetstreamManager(deps.nc);
    const name = streamName(queue);
    await jsm.streams.update(name, {
      duplicate_window: nanos(1_000),
      max_msgs_per_subject: 5,
      discard_new_per_subject: false,
    });
    await jsm.consumers.update(name, consumerName(queue), {
      ack_wait: nanos(5_000),
      max_ack_pending: 9,
      max_deliver: 3,
      backoff: [nanos(1_000)],
    });
    const changes = await deps.bus.ensure(queue);
    for (const field of [
      "duplicate_window",
      "max_msgs_per_subject",
      "discard_new_per_subject",
      "ack_wait",
      "max_ack_pending",
      "max_deliver",
      "backoff",
    ]) {
      expect(changes.join("\n")).toContain(`: ${field} was`);
    }
    expect(await deps.bus.ensure(queue)).toEqual([]);
    expect(await deps.bus.state(queue)).toEqual({ pending: 0, inFlight: 1 });
    expect(await held.current()).toBe(true);
    await deps.bus.close();
  });

  test("told to create only, it corrects what is unsafe and leaves other versions' choices", async () => {
    const { deps, queue } = await busOn(nats);
    await deps.bus.ensure(queue);
    const jsm = await jetstreamManager(deps.nc);
    const [name, runner] = [streamName(queue), consumerName(queue)];
    const consumer = async () => (await jsm.consumers.info(name, runner)).config;
    await jsm.streams.update(name, { duplicate_window: nanos(1_000) });
    await jsm.consumers.update(name, runner, { ack_wait: nanos(90_000), max_deliver: -1 });
    expect(await deps.bus.ensure(queue, "create")).toEqual([]);
    expect(await consumer()).toMatchObject({ ack_wait: nanos(90_000), max_deliver: -1 });
    await jsm.consumers.update(name, runner, { max_deliver: 7, max_ack_pending: 9 });
    expect(await deps.bus.ensure(queue, "create")).toEqual([
      `corrected consumer ${runner} of ${name}: max_deliver was 7, is 1000`,
      `corrected consumer ${runner} of ${name}: max_ack_pending was 9, is 1`,
    ]);
    expect(await consumer()).toMatchObject({
      ack_wait: nanos(90_000),
      max_deliver: 1000,
      max_ack_pending: 1,
    });
    // Later waits count too, and the first of them stands where ack_wait was.
    await jsm.consumers.update(name, runner, { backoff: [nanos(60_000), nanos(1_000)] });
    expect((await deps.bus.ensure(queue, "create")).join()).toContain("backoff was [1m, 1s], is []");
    expect((await consumer()).backoff ?? []).toEqual([]);
    await jsm.consumers.update(name, runner, { ack_wait: nanos(1_000) });
    expect((await deps.bus.ensure(queue, "create")).join()).toContain("ack_wait was 1s, is 30s");
    expect((await jsm.streams.info(name)).config.duplicate_window).toBe(nanos(1_000));
    await deps.bus.close();
  });

  test.each([
    ["a stream with another retention", "retention"],
    ["a stream in memory", "storage"],
  ])("%s is a clear error, and is left alone", async (_, field) => {
    const { deps, queue } = await busOn(nats);
    const jsm = await jetstreamManager(deps.nc);
    const name = streamName(queue);
    const wrong =
      field === "retention"
        ? { retention: "limits" as const }
        : { retention: "workqueue" as const, storage: "memory" as const };
    await jsm.streams.add({ name, subjects: [`${subjectPrefix(queue)}*`], ...wrong });
    const before = (await jsm.streams.info(name)).config;
    await expect(deps.bus.ensure(queue)).rejects.toMatchObject({
      code: "queue_drift",
      message: expect.stringMatching(new RegExp(`${field} is .* and should be .*PAWL_GENERATION`)),
    });
    expect((await jsm.streams.info(name)).config).toEqual(before);
    await deps.bus.close();
  });

  test("a consumer whose fixed field differs, and subjects that another stream has, are clear errors", async () => {
    const { deps, queue } = await busOn(nats);
    await deps.bus.ensure(queue);
    const jsm = await jetstreamManager(deps.nc);
    await jsm.consumers.delete(streamName(queue), consumerName(queue));
    await jsm.consumers.add(streamName(queue), {
      durable_name: consumerName(queue),
      ack_policy: "explicit",
      max_waiting: 7,
    });
    await expect(deps.bus.ensure(queue)).rejects.toMatchObject({
      code: "queue_drift",
      message: expect.stringContaining("max_waiting is 7"),
    });

    const other = { ...queue, agent: "b" };
    await jsm.streams.add({ name: `${streamName(other)}_mine`, subjects: [`${subjectPrefix(other)}>`] });
    await expect(deps.bus.ensure(other)).rejects.toMatchObject({
      code: "queue_drift",
      message: expect.stringContaining("another stream has its subjects"),
    });
    await deps.bus.close();
  });
});
