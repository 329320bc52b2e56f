import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { message } from "../support/servers/bus.ts";
import { type BusWorld, everyBus, next } from "../support/servers/buses.ts";

describe.each(everyBus())("$kind", (buses) => {
  beforeAll(() => buses.start());
  afterAll(() => buses.stop());

  describe("publish", () => {
    let world: BusWorld;
    beforeAll(async () => {
      world = await buses.open({ duplicateWindow: 1_000, queueBytes: 4_000, inputLimit: 1_000 });
    });
    afterAll(() => world[Symbol.asyncDispose]());
    beforeEach(() => world.purge());

    test("the same Msg-Id inside the window is a duplicate, also after the message is gone", async () => {
      const { bus, queue } = world;
      const first = await bus.publish(queue, message("a"));
      expect(first.kind).toBe("stored");
      expect(await bus.publish(queue, message("a"))).toEqual({ ...first, kind: "duplicate" });
      await (await next(world)).ack();
      expect(await bus.publish(queue, message("a"))).toEqual({ ...first, kind: "duplicate" });
      await world.pass(1_100);
      expect(await bus.publish(queue, message("a"))).toEqual({
        kind: "stored",
        seq: (first.kind === "stored" ? first.seq : 0) + 1,
      });
    });

    test("another Msg-Id while the message is there finds the subject occupied, in flight too", async () => {
      const { bus, queue } = world;
      await bus.publish(queue, message("b"));
      expect(await bus.publish(queue, message("b", "other"))).toEqual({ kind: "occupied" });
      const held = await next(world);
      expect(await bus.publish(queue, message("b", "other"))).toEqual({ kind: "occupied" });
      const headers = { "Pawl-Dispatch": "1", "Nats-Msg-Id": "submit:b" };
      expect(await bus.lookup(queue, "b")).toEqual({
        seq: held.seq,
        headers: new Map(Object.entries(headers)),
      });
      await held.ack();
      expect(await bus.lookup(queue, "b")).toBeUndefined();
      // A refused Msg-Id was not remembered.
      expect((await bus.publish(queue, message("b", "other"))).kind).toBe("stored");
    });

    test("a full queue is told apart from an occupied subject", async () => {
      const { bus, queue } = world;
      const big = { ...message("big"), data: new Uint8Array(3_500) };
      expect((await bus.publish(queue, big)).kind).toBe("stored");
      await expect(bus.publish(queue, { ...big, taskId: "big2", msgId: "x" })).rejects.toMatchObject({
        code: "queue_full",
      });
      expect(await bus.publish(queue, { ...big, msgId: "y" })).toEqual({ kind: "occupied" });
    });

    test("no stream, and a message over the server's limit, say what to do", async () => {
      const { bus, queue } = world;
      await expect(bus.publish({ ...queue, agent: "nobody" }, message("a"))).rejects.toMatchObject({
        code: "queue_missing",
        message: expect.stringContaining("no stream takes"),
      });
      const huge = { ...message("huge"), data: new Uint8Array(2 * 1024 * 1024) };
      await expect(bus.publish(queue, huge)).rejects.toMatchObject({
        code: "bus_refused",
        message: expect.stringContaining("max_payload"),
      });
    });
  });

  describe("deliver", () => {
    test("one at a time; a pull that already waits is served when the ack comes", async () => {
      await using world = await buses.open();
      const { bus, queue } = world;
      for (const id of ["a", "b"]) await bus.publish(queue, message(id));
      const first = await next(world);
      const waiting = bus.pull(queue, 5_000);
      let served = false;
      void waiting.delivery.then(() => {
        served = true;
      });
      await first.working();
      expect(await bus.state(queue)).toEqual({ pending: 1, inFlight: 1 });
      expect(served).toBe(false);
      await first.ack();
      expect((await world.served(waiting))?.seq).toBe(2);
    });

    test("what is delivered is what was published, and a pull that finds nothing ends", async () => {
      await using world = await buses.open();
      const { bus, queue } = world;
      await bus.publish(queue, message("a"));
      const held = await next(world);
      expect(held).toMatchObject({ seq: 1, redelivered: false, deliveries: 1 });
      expect(new Uint8Array(held.data)).toEqual(message("a").data);
      expect(held.subject).toMatch(/\.a$/);
      expect(held.headers.get("Pawl-Dispatch")).toBe("1");
      const begun = world.now();
      expect(await world.served(bus.pull(queue, 1_000))).toBeUndefined();
      expect(world.now() - begun).toBeGreaterThanOrEqual(950);
      await held.ack();
      expect(await bus.state(queue)).toEqual({ pending: 0, inFlight: 0 });
      // An ack can be repeated, and means no more than the first.
      await held.ack();
    });

    test("a withdrawn pull swallows no message", async () => {
      await using world = await buses.open();
      const { bus, queue } = world;
      const withdrawn = bus.pull(queue, 5_000);
      await world.pass(100);
      await withdrawn.cancel();
      expect(await world.served(withdrawn)).toBeUndefined();
      await bus.publish(queue, message("a"));
      expect((await next(world)).redelivered).toBe(false);
    });

    test("a heartbeat postpones the redelivery; the newest delivery alone is current", async () => {
      await using world = await buses.open({ ackWait: 3_000 });
      const { bus, queue } = world;
      await bus.publish(queue, message("a"));
      const first = await next(world);
      for (let beat = 0; beat < 5; beat++) {
        await world.pass(800);
        await first.working();
        expect(await first.current()).toBe(true);
      }
      const second = await next(world);
      expect(second).toMatchObject({ redelivered: true, deliveries: 2, seq: first.seq });
      expect(await first.current()).toBe(false);
      expect(await second.current()).toBe(true);
      // The broker would take the stale holder's word; only the check before tells.
      await expect(first.working()).resolves.toBeUndefined();
    });

    test("a stale holder's words count as the newest one's do", async () => {
      await using world = await buses.open({ ackWait: 30_000 });
      const { bus, queue } = world;
      await bus.publish(queue, message("a"));
      const first = await next(world);
      await first.nak(0);
      const second = await next(world);
      await first.nak(0);
      const third = await next(world);
      expect([second.deliveries, third.deliveries]).toEqual([2, 3]);
      await first.ack();
      expect(await bus.lookup(queue, "a")).toBeUndefined();
      expect(await bus.state(queue)).toEqual({ pending: 0, inFlight: 0 });
      // Of what is acked they are confirmed too, and do nothing.
      for (const one of [second, third]) {
        await one.nak(0);
        await one.working();
        await one.ack();
      }
      expect(await third.current()).toBe(true);
    });

    test("what is put up for redelivery is delivered, though somebody says that it is worked on", async () => {
      await using world = await buses.open({ ackWait: 30_000 });
      const { bus, queue } = world;
      await bus.publish(queue, message("a"));
      const first = await next(world);
      await first.nak(0);
      await first.working();
      const second = await next(world);
      expect(second.deliveries).toBe(2);
      // A later nak with a delay takes it back.
      await second.nak(0);
      await second.nak(20_000);
      expect(await world.served(bus.pull(queue, 1_000))).toBeUndefined();
    });

    test("a cut ack_wait is told and ends no hold; a removed consumer does", async () => {
      await using world = await buses.open({ ackWait: 10_000 });
      const { bus, queue } = world;
      await bus.publish(queue, message("a"));
      const drifts: string[] = [];
      const held = await world.served(bus.pull(queue, 30_000, (drift) => void drifts.push(drift)));
      if (!held) throw new Error("nothing was delivered");
      expect(await held.current()).toBe(true);
      expect(drifts).toEqual([]);
      await world.change({ ackWait: 2_000, maxDeliver: 3, maxAckPending: 2 });
      expect(await held.current()).toBe(true);
      expect(drifts.join()).toMatch(
        /ack_wait is 2s and should be 10s; max_deliver is 3 and should be 1000; max_ack_pending is 2 and should be 1/,
      );
      await world.removeConsumer();
      expect(await held.current()).toBe(false);
      await expect(bus.state(queue)).rejects.toMatchObject({ code: "queue_gone" });
      expect(await bus.inspect(queue)).toMatchObject({ pending: 1, inFlight: 0 });
      expect((await bus.inspect(queue)).consumer).toBeUndefined();
      await expect(world.served(bus.pull(queue, 1_000))).rejects.toMatchObject({ code: "queue_gone" });
    });

    test("a cut ack_wait counts for what is in flight", async () => {
      await using world = await buses.open({ ackWait: 60_000 });
      const { bus, queue } = world;
      await bus.publish(queue, message("a"));
      await next(world);
      await world.change({ ackWait: 1_000 });
      expect(await next(world)).toMatchObject({ seq: 1, deliveries: 2 });
    });

    test("a nak comes back at once, or after its delay, and holds its place meanwhile", async () => {
      await using world = await buses.open();
      const { bus, queue } = world;
      for (const id of ["a", "b"]) await bus.publish(queue, message(id));
      await (await next(world)).nak(0);
      const again = await next(world);
      expect(again).toMatchObject({ seq: 1, redelivered: true });
      const sent = world.now();
      await again.nak(700);
      expect((await next(world)).seq).toBe(1);
      expect(world.now() - sent).toBeGreaterThanOrEqual(690);
    });
  });
});
