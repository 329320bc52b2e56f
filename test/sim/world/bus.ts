import { PawlError } from "../../../shared/errors/errors.ts";
import type { Bus } from "../../../shared/ports/bus.ts";
import type { Settings } from "../../../shared/settings/settings.ts";
import {
  consumerName,
  type Queue,
  queueNamed,
  streamName,
  subjectPrefix,
} from "../../../shared/task/names.ts";
import type { Broker } from "./broker.ts";
import type { Network } from "./network.ts";
import type { Process } from "./process.ts";
import { pulls } from "./pull.ts";
import { ensured, inspected } from "./queue.ts";
import type { Left } from "./stream.ts";
import type { Time } from "./time.ts";

/** What buses of one world share. */
export interface BusWorld {
  readonly time: Time;
  readonly network: Network;
  readonly broker: Broker;
  readonly settings: Settings;
  readonly left: Left;
}

/** A holder is asked for this long whether it lives. */
const HOLDER_ANSWERS = 500;
/** The most that a message may have, as a server's max_payload less headers. */
const ROOM = 1024 * 1024 - 4096;

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
        return ensured(world, queue, how);
      }),
    publish: (queue, message) => {
      if (message.data.length > ROOM)
        return Promise.reject(new PawlError("bus_refused", `more than the server's max_payload of ${ROOM}`));
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
    pull: pulls(world, process),
    queues: () =>
      ask("queues", () =>
        [...broker.streams.keys()].sort().flatMap((name) => queueNamed(name, settings.namespace) ?? []),
      ),
    state: (queue) =>
      ask("state", () => {
        const { consumer } = streamOf(queue, "state");
        if (!consumer) throw new PawlError("queue_gone", `there is no consumer ${consumerName(queue)}`);
        const { pending, inFlight } = consumer.info();
        return { pending, inFlight };
      }),
    inspect: (queue) => ask("inspect", () => inspected(world, streamOf(queue, "inspect"))),
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
    answerFor: ({ token }, isHeld) => {
      const answer = () => {
        const isDeaf =
          process.isDead || process.isFrozen || process.isCutFrom("bus") || process.deposedUntil > time.now;
        return isDeaf ? undefined : isHeld();
      };
      broker.holders.set(token, answer);
      return () => void broker.holders.delete(token);
    },
    isHeld: async ({ token }) => {
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
