import { PawlError } from "../../../shared/errors/errors.ts";
import type { Bus, Delivery, Pull, QueueDifference } from "../../../shared/ports/bus.ts";
import { isUnsafe } from "../../../shared/ports/queue-fields.ts";
import type { Settings } from "../../../shared/settings/settings.ts";
import { type Queue, queueNamed, streamName, subjectPrefix } from "../../../shared/task/names.ts";
import { type Broker, type Handed, Stream, type Waiting } from "./broker.ts";
import type { Network } from "./network.ts";
import type { Process } from "./process.ts";
import type { Time } from "./time.ts";

/** What buses of one world share. */
export interface BusWorld {
  readonly time: Time;
  readonly network: Network;
  readonly broker: Broker;
  readonly settings: Settings;
  /** Told of every message that leaves a stream. */
  readonly left: ConstructorParameters<typeof Stream>[0]["left"];
}

/** A holder is asked for this long whether it lives. */
const HOLDER_ANSWERS = 500;

/** The bus as one process has it: the product's port over a simulated server. */
export function simulatedBus(world: BusWorld, process: Process): Bus {
  const { time, network, broker, settings } = world;
  const ask = <T>(what: string, act: () => T, deposed?: (since: number) => T): Promise<T> =>
    network.ask(process, { to: "bus", what, act, ...(deposed && { deposed }) });
  const streamOf = (queue: Queue, what: string) => broker.stream(streamName(queue), what);
  let life = broker.life;

  return {
    name: "a simulated JetStream",
    ensure: (queue, how = "correct") =>
      ask("ensure", () => {
        life = broker.life;
        if (how === "correct") broker.advisoriesSince ??= time.now;
        return ensured(world, queue, how);
      }),
    publish: (queue, message) => {
      const sent = { ...message, data: message.data.slice() };
      return ask(`publish ${message.taskId}`, () => {
        const stream = broker.streams.get(streamName(queue));
        if (!stream) throw new PawlError("queue_missing", `no stream takes ${subjectPrefix(queue)}*`);
        return stream.publish(subjectPrefix(queue) + message.taskId, sent);
      });
    },
    lookup: (queue, taskId) =>
      ask(`lookup ${taskId}`, () => {
        const found = streamOf(queue, "lookup").last(subjectPrefix(queue) + taskId);
        return found && { seq: found.seq, headers: found.headers };
      }),
    pull: (queue, waitMs, drifted) => pull(world, process, queue, waitMs, drifted),
    queues: () =>
      ask("queues", () =>
        [...broker.streams.keys()].sort().flatMap((name) => queueNamed(name, settings.namespace) ?? []),
      ),
    state: (queue) =>
      ask("state", () => {
        const { pending, inFlight } = streamOf(queue, "state");
        return { pending, inFlight };
      }),
    inspect: (queue) =>
      ask("inspect", () => {
        const stream = streamOf(queue, "inspect");
        const { pending, inFlight, redelivered, createdAt, consumer, lastSeq, messages } = stream;
        const [first] = messages.values();
        return {
          now: Math.floor(time.now),
          pending,
          inFlight,
          redelivered,
          ...(first && { oldestAt: Math.floor(first.at) }),
          messages: messages.size,
          firstSeq: first?.seq ?? lastSeq + 1,
          lastSeq,
          createdAt: Math.floor(createdAt),
          consumer: { ...consumer, createdAt: Math.floor(createdAt) },
          differences: differencesOf(stream, settings),
        };
      }),
    survivors: (queue, from, limit) =>
      ask("survivors", () => {
        const all = [...streamOf(queue, "survivors").messages.values()];
        return all
          .filter(({ seq }) => seq >= from)
          .slice(0, limit)
          .map((one) => ({ ...one, at: Math.floor(one.at) }));
      }),
    remove: (queue, seq) => ask(`remove ${seq}`, () => streamOf(queue, "remove").remove(seq)),
    advisories: (limit) =>
      ask("advisories", () => {
        broker.advisoriesSince ??= time.now;
        return broker.advisories.slice(0, limit);
      }),
    advisoriesSince: () =>
      ask("advisories since", () => broker.advisoriesSince && Math.floor(broker.advisoriesSince)),
    forgetAdvisory: ({ at }) =>
      ask("forget advisory", () => {
        const i = broker.advisories.findIndex((one) => one.at === at);
        if (i >= 0) broker.advisories.splice(i, 1);
      }),
    announce: () => {},
    listen: () => () => {},
    serverId: () => {
      // A client learns of its server's next life when it has connected again.
      if (network.isUp.bus && !process.isCutFrom("bus")) life = broker.life;
      return `server-${life}`;
    },
    answerFor: (token, isHeld) => {
      const answer = () => {
        const isDeaf =
          process.isDead || process.isFrozen || process.isCutFrom("bus") || process.deposedUntil > time.now;
        return isDeaf ? undefined : isHeld();
      };
      broker.holders.set(token, answer);
      return () => void broker.holders.delete(token);
    },
    isHeld: async (token) => {
      const answer = ask("is it held", () => broker.holders.get(token)?.() === true).catch(() => false);
      const patience = new AbortController();
      const late = process.clock.sleep(HOLDER_ANSWERS, patience.signal).then(() => false);
      const isHeld = await Promise.race([answer, late]);
      patience.abort();
      return isHeld;
    },
    close: async () => {},
  };
}

function ensured(world: BusWorld, queue: Queue, how: "correct" | "create"): readonly string[] {
  const { time, broker, settings, left } = world;
  const name = streamName(queue);
  const { ackWait, maxDeliver, duplicateWindow } = settings;
  const there = broker.streams.get(name);
  if (!there) {
    const limits = { ackWait, maxDeliver, maxAckPending: 1 };
    const advise = broker.advise.bind(broker);
    broker.streams.set(name, new Stream({ name, time, limits, duplicateWindow, advise, left }));
    return [`created stream ${name}`];
  }
  const wrong = differencesOf(there, settings).filter((one) => how === "correct" || one.isUnsafe);
  if (wrong.length === 0) return [];
  there.change({
    ...(wrong.some(({ field }) => field === "ack_wait") && { ackWait }),
    ...(wrong.some(({ field }) => field === "max_deliver") && { maxDeliver }),
    ...(wrong.some(({ field }) => field === "max_ack_pending") && { maxAckPending: 1 }),
  });
  return wrong.map(({ field, is, should }) => `corrected ${name}: ${field} was ${is}, is ${should}`);
}

function differencesOf({ limits }: Stream, settings: Settings): QueueDifference[] {
  const pairs = [
    ["ack_wait", limits.ackWait, settings.ackWait],
    ["max_deliver", limits.maxDeliver, settings.maxDeliver],
    ["max_ack_pending", limits.maxAckPending, 1],
  ] as const;
  return pairs.flatMap(([field, have, want]) => {
    if (have === want) return [];
    return [
      { field, is: String(have), should: String(want), isUnsafe: isUnsafe({ field, have, want }, {}, {}) },
    ];
  });
}

function pull(
  { time, network, broker, settings }: BusWorld,
  process: Process,
  queue: Queue,
  waitMs: number,
  drifted: (drift: string) => void = () => {},
): Pull {
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
  const deliver = (message: Handed) =>
    deliveryOf({ time, network, broker, settings } as BusWorld, process, queue, message, drifted);
  /** A fetch ends by itself, a little after the server has let go of it, or would have. */
  const end = (ms: number) => time.at(time.now + ms, () => process.wake(() => resolve(undefined)));
  let endsAt = end(waitMs + settings.requestTimeout);
  const begun = network.ask(process, {
    to: "bus",
    what: "pull",
    act: () => {
      Object.assign(waiting, { until: time.now + waitMs });
      broker.stream(streamName(queue), "Pulling").wait(waiting);
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
      const act = () => broker.streams.get(streamName(queue))?.withdraw(waiting);
      await network.ask(process, { to: "bus", what: "withdraw pull", act }).catch(() => {});
    },
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
  const say = (word: string, act: (stream: Stream) => void, isHeeded = true) =>
    network.ask(process, {
      to: "bus",
      what: `${word} ${seq} of ${name}`,
      act: () => {
        const stream = broker.streams.get(name);
        if (stream) act(stream);
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
    working: () => say("+WPI", (stream) => stream.working(seq), false),
    current: () =>
      network.ask(process, {
        to: "bus",
        what: `newest delivery of ${name}`,
        act: () => {
          const stream = broker.streams.get(name);
          if (!stream) return false;
          const unsafe = differencesOf(stream, settings).filter((one) => one.isUnsafe);
          if (unsafe.length > 0) drifted(unsafe.map(({ field, is }) => `${field} is ${is}`).join("; "));
          return stream.deliverySequence <= deliverySequence;
        },
        // It knows of no delivery since it was cut off.
        deposed: () => true,
      }),
    ack: () => say("+ACK", (stream) => stream.ack(seq)),
    nak: (delayMs) => say("-NAK", (stream) => stream.nak(seq, delayMs)),
  };
}
