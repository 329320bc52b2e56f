import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { streamName } from "../../shared/task/names.ts";
import { message } from "../support/servers/bus.ts";
import { type BusWorld, everyBus, next, onNats, simulated } from "../support/servers/buses.ts";

/** What an inspection says that is not a time. */
async function counts({ bus, queue }: BusWorld) {
  const { pending, inFlight, redelivered, messages, firstSeq, lastSeq, consumer } = await bus.inspect(queue);
  const { delivered, ackFloor } = consumer ?? {};
  return { pending, inFlight, redelivered, messages, firstSeq, lastSeq, delivered, ackFloor };
}

describe.each(everyBus())("$kind", (buses) => {
  beforeAll(() => buses.start());
  afterAll(() => buses.stop());

  test("a queue is made once; what somebody changed is corrected, and named", async () => {
    await using world = await buses.open();
    const { bus, queue } = world;
    const other = { ...queue, lane: 1 };
    const [name, runner] = [streamName(other), `${queue.namespace}-runner`];
    expect(await bus.ensure(other)).toEqual([
      `created stream ${name}`,
      `created consumer ${runner} of ${name}`,
    ]);
    expect(await bus.ensure(other)).toEqual([]);
    expect(await bus.queues()).toEqual([queue, other]);
    await world.change({ ackWait: 90_000, maxDeliver: 7, maxAckPending: 9 });
    expect((await bus.inspect(queue)).differences).toEqual([
      { field: "ack_wait", is: "90s", should: "30s", isUnsafe: false },
      { field: "max_deliver", is: "7", should: "1000", isUnsafe: true },
      { field: "max_ack_pending", is: "9", should: "1", isUnsafe: true },
    ]);
    const corrected = (field: string) => `corrected consumer ${runner} of ${streamName(queue)}: ${field}`;
    expect(await bus.ensure(queue, "create")).toEqual([
      corrected("max_deliver was 7, is 1000"),
      corrected("max_ack_pending was 9, is 1"),
    ]);
    expect(await bus.ensure(queue)).toEqual([corrected("ack_wait was 90s, is 30s")]);
    expect((await bus.inspect(queue)).differences).toEqual([]);
  });

  test("counts follow what is published, delivered, acked and removed", async () => {
    await using world = await buses.open();
    const { bus, queue } = world;
    const none = { pending: 0, inFlight: 0, redelivered: 0 };
    const empty = { ...none, messages: 0, firstSeq: 0, lastSeq: 0, delivered: 0, ackFloor: 0 };
    expect(await counts(world)).toEqual(empty);
    for (const id of ["a", "b", "c", "d"]) await bus.publish(queue, message(id));
    const first = await next(world);
    const there = { ...none, messages: 4, firstSeq: 1, lastSeq: 4 };
    const held = { ...there, pending: 3, inFlight: 1, delivered: 1, ackFloor: 0 };
    expect(await counts(world)).toEqual(held);
    await bus.remove(queue, 3);
    await bus.remove(queue, 3);
    expect(await counts(world)).toEqual({ ...held, pending: 2, messages: 3 });
    await first.nak(0);
    const again = await next(world);
    expect(await counts(world)).toEqual({ ...held, pending: 2, messages: 3, redelivered: 1 });
    await again.ack();
    const acked = { ...none, pending: 2, messages: 2, firstSeq: 2, lastSeq: 4, delivered: 1, ackFloor: 1 };
    expect(await counts(world)).toEqual(acked);
    await (await next(world)).ack();
    expect((await next(world)).seq).toBe(4);
    expect(await counts(world)).toMatchObject({ firstSeq: 4, delivered: 4, ackFloor: 2 });
  });

  test("what is removed in flight frees its place, and what is purged too", async () => {
    await using world = await buses.open();
    const { bus, queue } = world;
    for (const id of ["a", "b", "c"]) await bus.publish(queue, message(id));
    const first = await next(world);
    await bus.remove(queue, 1);
    const second = await next(world);
    expect(second.seq).toBe(2);
    // What is gone is acked all the same.
    await first.ack();
    await world.purge();
    await second.ack();
    expect(await counts(world)).toEqual({
      ...{ pending: 0, inFlight: 0, redelivered: 0, messages: 0 },
      ...{ firstSeq: 4, lastSeq: 3, delivered: 3, ackFloor: 3 },
    });
    await bus.publish(queue, message("d"));
    expect((await next(world)).seq).toBe(4);
  });

  test("survivors come in order from any sequence, in flight or not", async () => {
    await using world = await buses.open();
    const { bus, queue } = world;
    for (const id of ["a", "b", "c", "d", "e"]) await bus.publish(queue, message(id));
    await next(world);
    await bus.remove(queue, 2);
    const seqs = async (from: number, limit: number) =>
      (await bus.survivors(queue, from, limit)).map(({ seq }) => seq);
    expect(await seqs(1, 100)).toEqual([1, 3, 4, 5]);
    expect(await seqs(0, 2)).toEqual([1, 3]);
    expect(await seqs(2, 2)).toEqual([3, 4]);
    expect(await seqs(6, 2)).toEqual([]);
    const [one] = await bus.survivors(queue, 5, 1);
    expect(one).toMatchObject({ subject: expect.stringMatching(/\.e$/) });
    expect(new Uint8Array(one?.data ?? [])).toEqual(message("e").data);
    expect(one?.headers.get("Nats-Msg-Id")).toBe("submit:e");
    const { oldestAt = 0, now } = await bus.inspect(queue);
    expect(oldestAt).toBeLessThanOrEqual(one?.at ?? 0);
    expect(one?.at).toBeLessThanOrEqual(now);
  });

  test("of what was delivered too often only an advisory is left, when the next pull comes", async () => {
    await using world = await buses.open();
    const { bus, queue } = world;
    await world.change({ maxDeliver: 2 });
    expect(await bus.advisoriesSince()).toBeTypeOf("number");
    for (const id of ["a", "b"]) await bus.publish(queue, message(id));
    const first = await next(world);
    await first.nak(0);
    const second = await next(world);
    await second.nak(0);
    expect(await bus.advisories(10)).toEqual([]);
    const other = await next(world);
    expect(other.seq).toBe(2);
    await world.pass(200);
    const said = { at: 1, queue: streamName(queue), seq: 1, deliveries: 2 };
    expect(await bus.advisories(10)).toEqual([said]);
    expect(await counts(world)).toMatchObject({ pending: 0, inFlight: 1, redelivered: 1, messages: 2 });
    await world.change({ maxDeliver: 9 });
    await other.ack();
    expect(await world.served(bus.pull(queue, 1_000))).toBeUndefined();
    expect((await bus.lookup(queue, "a"))?.seq).toBe(1);
    await bus.forgetAdvisory(said);
    expect(await bus.advisories(10)).toEqual([]);
    // A late word of its holder is still taken.
    await first.ack();
    expect(await bus.lookup(queue, "a")).toBeUndefined();
  });

  test("a consumer that is made anew begins with what is there, and knows nothing of acks of its former life", async () => {
    await using world = await buses.open({ requestTimeout: 1_000 });
    const { bus, queue } = world;
    for (const id of ["a", "b"]) await bus.publish(queue, message(id));
    await (await next(world)).ack();
    const former = await next(world);
    await world.removeConsumer();
    await expect(former.working()).rejects.toMatchObject({ code: "bus_unavailable" });
    expect(await bus.ensure(queue)).toHaveLength(1);
    expect(await counts(world)).toMatchObject({ pending: 1, inFlight: 0, delivered: 1, ackFloor: 1 });
    await expect(former.ack()).rejects.toMatchObject({ code: "bus_unavailable" });
    expect(await next(world)).toMatchObject({ seq: 2, redelivered: false });
    // Once it is delivered again, the former holder's word counts.
    await former.ack();
    expect(await counts(world)).toMatchObject({ messages: 0, inFlight: 0 });
  });

  test("who holds a claim answers for it, until it does no more", async () => {
    await using world = await buses.open();
    const { bus } = world;
    let isHeld = true;
    const end = bus.answerFor({ agent: "a", token: "token" }, () => isHeld);
    const asked = (token: string) => bus.isHeld({ agent: "a", token });
    expect([await asked("token"), await asked("other")]).toEqual([true, false]);
    isHeld = false;
    expect(await asked("token")).toBe(false);
    isHeld = true;
    end();
    expect(await asked("token")).toBe(false);
  });
});

describe.each([onNats(), simulated(), simulated(2_000)])("$kind, killed and back", (buses) => {
  beforeAll(() => buses.start());
  afterAll(() => buses.stop());

  test("ids of acked messages are forgotten, those of stored ones are not", async () => {
    await using world = await buses.open();
    const { bus, queue } = world;
    const life = bus.serverId();
    for (const id of ["a", "b", "c"]) await bus.publish(queue, message(id));
    await (await next(world)).ack();
    await world.restart();
    expect(bus.serverId()).not.toBe(life);
    expect(await bus.publish(queue, message("b"))).toEqual({ kind: "duplicate", seq: 2 });
    expect(await bus.publish(queue, message("a"))).toEqual({ kind: "stored", seq: 4 });
  });

  test("where the newest message is gone all ids may be forgotten; a task still has one message", async () => {
    await using world = await buses.open();
    const { bus, queue } = world;
    for (const id of ["a", "b"]) await bus.publish(queue, message(id));
    await bus.remove(queue, 2);
    await world.restart();
    expect((await bus.publish(queue, message("a"))).kind).toMatch(/^(duplicate|occupied)$/);
    expect(await bus.publish(queue, message("b"))).toEqual({ kind: "stored", seq: 3 });
  });

  test("what was acked does not come again; what was in flight does, and its count is a hint", async () => {
    await using world = await buses.open({ ackWait: 4_000 });
    const { bus, queue } = world;
    for (const id of ["a", "b", "c"]) await bus.publish(queue, message(id));
    await (await next(world)).ack();
    const held = await next(world);
    const begun = world.now();
    await world.restart();
    const again = await next(world);
    expect(again.seq).toBe(2);
    // No sooner than an ack wait after its delivery, but for times that are kept in whole seconds; unless that is forgotten.
    if (again.redelivered) expect(world.now() - begun).toBeGreaterThan(2_900);
    expect(again.deliveries).toBeLessThanOrEqual(2);
    await held.ack();
    expect((await next(world)).seq).toBe(3);
  });
});
