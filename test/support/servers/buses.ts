import { jetstreamManager } from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import type { Bus, Delivery, Pull } from "../../../shared/ports/bus.ts";
import type { Settings } from "../../../shared/settings/settings.ts";
import { consumerName, type Queue, streamName } from "../../../shared/task/names.ts";
import type { ConsumerLimits } from "../../sim/world/consumer.ts";
import { until } from "../time/until.ts";
import { busOn } from "./bus.ts";
import { CalmWorld } from "./simulated.ts";
import { testNats } from "./stores.ts";

/** A bus with a queue of its own, which is made sure of, and what a test can do to the server behind it. */
export interface BusWorld extends AsyncDisposable {
  readonly bus: Bus;
  readonly queue: Queue;
  /** What a pull ends with. Time passes while it waits. */
  served(pull: Pull): Promise<Delivery | undefined>;
  pass(ms: number): Promise<void>;
  /** The time that has passed, by a clock that only grows. */
  now(): number;
  purge(): Promise<void>;
  /** As somebody does it with the server's own tools. */
  change(limits: Partial<ConsumerLimits>): Promise<void>;
  removeConsumer(): Promise<void>;
  /** The server is killed, and comes back. */
  restart(): Promise<void>;
}

/** A kind of bus: every test of the contract is run on each. */
export interface Buses {
  readonly kind: string;
  start(): Promise<void>;
  stop(): Promise<void>;
  open(given?: Partial<Settings>): Promise<BusWorld>;
}

export function everyBus(): Buses[] {
  return [onNats(), simulated()];
}

/** What is delivered next: there is something, so it only takes its time. */
export async function next({ bus, queue, served }: BusWorld): Promise<Delivery> {
  const delivery = await served(bus.pull(queue, 30_000));
  if (!delivery) throw new Error("nothing was delivered");
  return delivery;
}

export function onNats(): Buses {
  let nats: LocalNats;
  return {
    kind: "nats-server",
    start: async () => {
      nats = await testNats();
    },
    stop: () => nats.stop(),
    open: async (given) => {
      const { deps, queue } = await busOn(nats, given);
      await deps.bus.ensure(queue);
      const jsm = await jetstreamManager(deps.nc);
      const [stream, consumer] = [streamName(queue), consumerName(queue)];
      return {
        bus: deps.bus,
        queue,
        served: (pull) => pull.delivery,
        pass: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
        now: () => performance.now(),
        purge: async () => void (await jsm.streams.purge(stream)),
        change: async ({ ackWait, maxDeliver, maxAckPending }) =>
          void (await jsm.consumers.update(stream, consumer, {
            ...(ackWait !== undefined && { ack_wait: nanos(ackWait) }),
            ...(maxDeliver !== undefined && { max_deliver: maxDeliver }),
            ...(maxAckPending !== undefined && { max_ack_pending: maxAckPending }),
          })),
        removeConsumer: async () => void (await jsm.consumers.delete(stream, consumer)),
        restart: async () => {
          await nats.halt("SIGKILL");
          await nats.restart();
          await until("the bus is back", () => deps.bus.inspect(queue));
        },
        [Symbol.asyncDispose]: () => deps.bus.close(),
      };
    },
  };
}

/** `forgets`: what of the last moments is not on disk when the server is killed. */
export function simulated(forgets = 0): Buses {
  return {
    kind: forgets > 0 ? "simulated, forgetful" : "simulated",
    start: async () => {},
    stop: async () => {},
    open: async (given) => {
      const world = new CalmWorld(given);
      const { broker, time } = world;
      const plain = world.bus();
      const bus: Bus = {
        ...world.driven(plain),
        pull: (...asked) => {
          const { delivery, cancel } = plain.pull(...asked);
          const driven = delivery.then((one) => one && world.driven(one));
          driven.catch(() => {});
          return { delivery: driven, cancel: () => world.until(cancel()) };
        },
      };
      const queue = { namespace: world.settings.namespace, agent: "a", lane: 0, generation: 1 };
      await bus.ensure(queue);
      const stream = broker.stream(streamName(queue), "the test");
      return {
        bus,
        queue,
        served: (pull) => world.until(pull.delivery),
        pass: (ms) => world.pass(ms),
        now: () => time.now,
        purge: async () => stream.purge(),
        change: async (limits) => stream.change(limits),
        removeConsumer: async () => stream.removeConsumer(),
        restart: async () => broker.restart(forgets),
        [Symbol.asyncDispose]: () => bus.close(),
      };
    },
  };
}
