import { PawlError } from "../../../shared/errors/errors.ts";
import type { Bus, Delivery, Pull } from "../../../shared/ports/bus.ts";
import { consumerName, type Queue, streamName } from "../../../shared/task/names.ts";
import type { BusWorld } from "./bus.ts";
import type { Handed, Waiting } from "./consumer.ts";
import { UNANSWERED } from "./network.ts";
import type { Process } from "./process.ts";
import { unsafeOf } from "./queue.ts";
import type { Stream } from "./stream.ts";

/** The pulls of one process. */
export function pulls(world: BusWorld, process: Process): Bus["pull"] {
  const { time, network, broker, settings } = world;

  return (queue, waitMs, drifted = () => {}): Pull => {
    const name = streamName(queue);
    const { promise, resolve, reject } = Promise.withResolvers<Delivery | undefined>();
    const waiting: Waiting = {
      until: 0,
      hand: (message) => {
        const { there, back } = {
          there: process.random.chance(network.losses),
          back: process.random.between(0.2, 3),
        };
        const isLost = there || process.isCutFrom("bus") || process.deposedUntil > time.now;
        if (isLost) return;
        time.at(time.now + back, () => process.wake(() => resolve(deliver(message))));
      },
    };
    const deliver = (message: Handed) => deliveryOf(world, process, queue, message, drifted);
    /** A fetch ends by itself, a little after the server has let go of it, or would have. */
    const end = (ms: number) => time.at(time.now + ms, () => process.wake(() => resolve(undefined)));
    let endsAt = end(waitMs + settings.requestTimeout);
    const begun = network.ask(process, {
      to: "bus",
      what: "pull",
      act: () => {
        const { consumer } = broker.stream(name, "Pulling");
        if (!consumer)
          throw new PawlError("queue_gone", `Pulling: there is no consumer ${consumerName(queue)}`);
        Object.assign(waiting, { until: time.now + waitMs });
        consumer.wait(waiting);
      },
    });
    begun.then(() => {
      endsAt();
      endsAt = end(waitMs + 10);
    }, reject);
    const over = () => endsAt();
    promise.then(over, over);
    return {
      delivery: promise,
      cancel: async () => {
        resolve(undefined);
        const act = () => broker.streams.get(name)?.consumer?.withdraw(waiting);
        await network.ask(process, { to: "bus", what: "withdraw pull", act }).catch(() => {});
      },
    };
  };
}

function deliveryOf(
  { network, broker, settings }: BusWorld,
  process: Process,
  queue: Queue,
  message: Handed,
  drifted: (drift: string) => void,
): Delivery {
  const { seq, subject, data, headers, deliveries, deliverySequence } = message;
  const name = streamName(queue);
  /** Without a consumer there is nobody to answer. */
  const say = (word: string, act: (stream: Stream) => boolean, isHeeded = true) =>
    network.ask<void>(process, {
      to: "bus",
      what: `${word} ${seq} of ${name}`,
      act: () => {
        const stream = broker.streams.get(name);
        return stream?.consumer && act(stream) ? undefined : UNANSWERED;
      },
      ...(!isHeeded && { deposed: () => {} }),
    });
  return {
    subject,
    data,
    headers,
    queue: name,
    seq,
    redelivered: deliveries > 1,
    deliveries,
    working: () =>
      say(
        "+WPI",
        ({ consumer }) => {
          consumer?.working(seq);
          return true;
        },
        false,
      ),
    current: () =>
      network.ask(process, {
        to: "bus",
        what: `newest delivery of ${name}`,
        act: () => {
          const consumer = broker.streams.get(name)?.consumer;
          if (!consumer) return false;
          const unsafe = unsafeOf(consumer, settings);
          if (unsafe) drifted(unsafe);
          return consumer.info().deliverySequence <= deliverySequence;
        },
        // It knows of no delivery since it was cut off.
        deposed: () => true,
      }),
    ack: () => say("+ACK", (stream) => stream.ack(seq)),
    nak: (delayMs) =>
      say("-NAK", ({ consumer }) => {
        consumer?.nak(seq, deliverySequence, delayMs);
        return true;
      }),
  };
}
