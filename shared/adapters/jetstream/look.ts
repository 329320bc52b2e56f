import type { ConsumerInfo, JetStreamManager, StoredMsg, StreamInfo } from "@nats-io/jetstream";
import type { MsgHdrs } from "@nats-io/nats-core";
import type { Advisory, Bus, KeptMessage } from "../../ports/bus.ts";
import type { Fill } from "../../ports/store.ts";
import type { Settings } from "../../settings/settings.ts";
import { advisoriesName, consumerName, type Queue, queueNamed, streamName } from "../../task/names.ts";
import { queueDifferences } from "./definition.ts";
import { apiCode, GONE, missing, NO_MESSAGE } from "./nats-errors.ts";
import type { Link } from "./nats-link.ts";
import { ensureAdvisories } from "./queue.ts";

/** No such message: 10043 where it was deleted before, 10057 where its sequence is not in the stream. */
const DELETED = new Set([NO_MESSAGE, 10043, 10057]);

/** Requests of a walk that are under way at once. */
const AT_ONCE = 16;
/** A page of messages ends after so much of their data. */
const MOST_BYTES = 4_000_000;

/** The bus for those who look at queues from outside: the dispatcher, the reconciliation, people. */
export function looks(
  jsm: JetStreamManager,
  link: Link,
  settings: Settings,
  store: string,
): Pick<
  Bus,
  | "queues"
  | "inspect"
  | "usage"
  | "survivors"
  | "remove"
  | "advisories"
  | "advisoriesSince"
  | "forgetAdvisory"
> {
  const ask = async <T>(what: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await link(work);
    } catch (error) {
      throw missing(error, what);
    }
  };

  /** The first message that is there, from this sequence on. */
  const nextFrom = (stream: string, seq: number): Promise<StoredMsg | undefined> =>
    ask(`Reading ${stream} from ${seq}`, async () => {
      try {
        // The server knows it; the client's type leaves it out.
        const query = { seq, next_by_subj: ">" } as { seq: number };
        return (await jsm.streams.getMessage(stream, query)) ?? undefined;
      } catch (error) {
        if (apiCode(error) === NO_MESSAGE) return undefined;
        throw error;
      }
    });

  /**
   * Messages that are there, in order. Where they lie close together, several sequences are asked for at once: each
   * answer is the first message from there on, so that none between them is left out. Where they are far apart, many
   * would be answered with the same one.
   */
  const walk = async (stream: string, from: number, limit: number): Promise<StoredMsg[]> => {
    const found: StoredMsg[] = [];
    let next = Math.max(1, from);
    let bytes = 0;
    for (let width = 1; found.length < limit && bytes < MOST_BYTES; ) {
      const begin = next;
      const asked = Array.from({ length: Math.min(width, limit - found.length) }, (_, i) => begin + i);
      const answers = await Promise.all(asked.map((seq) => nextFrom(stream, seq)));
      const before = found.length;
      for (const message of answers) {
        if (!message || message.seq < next) continue;
        found.push(message);
        bytes += message.data.length;
        next = message.seq + 1;
      }
      if (answers.at(-1) === undefined) break;
      width = found.length - before > width / 2 ? Math.min(2 * width, AT_ONCE) : 1;
    }
    return found;
  };

  const remove = (stream: string, seq: number): Promise<void> =>
    ask(`Deleting ${seq} of ${stream}`, async () => {
      try {
        await jsm.streams.deleteMessage(stream, seq);
      } catch (error) {
        // Another one was faster.
        if (!DELETED.has(apiCode(error) ?? 0)) throw error;
      }
    });

  return {
    queues: () =>
      ask("Listing streams", async () => {
        const found: Queue[] = [];
        for await (const name of jsm.streams.names(`${settings.namespace}.tasks.>`))
          found.push(...[queueNamed(name, settings.namespace) ?? []].flat());
        return found.sort((a, b) => (streamName(a) < streamName(b) ? -1 : 1));
      }),
    inspect: async (queue) => {
      const name = streamName(queue);
      const [stream, consumer] = await Promise.all([
        ask(`stream ${name}`, () => jsm.streams.info(name)),
        ask(`consumer of ${name}`, () => jsm.consumers.info(name, consumerName(queue))).catch(ifGone),
      ]);
      const { state, config } = stream;
      return {
        now: Date.parse(stream.ts as string),
        pending: consumer?.num_pending ?? state.messages,
        inFlight: consumer?.num_ack_pending ?? 0,
        redelivered: consumer?.num_redelivered ?? 0,
        ...(state.messages > 0 && { oldestAt: Date.parse(state.first_ts) }),
        messages: state.messages,
        firstSeq: state.first_seq,
        lastSeq: state.last_seq,
        createdAt: Date.parse(stream.created),
        ...(consumer && { consumer: consumerOf(consumer) }),
        differences: queueDifferences(queue, settings, store, config, consumer?.config),
      };
    },
    usage: async (queue) => {
      const name = streamName(queue);
      const stream = await ask(`stream ${name}`, () => jsm.streams.info(name)).catch(ifGone);
      return stream && fillOf(stream);
    },
    survivors: async (queue, from, limit) => (await walk(streamName(queue), from, limit)).map(kept),
    remove: (queue, seq) => remove(streamName(queue), seq),
    advisories: async (limit) => {
      const stream = advisoriesName(settings);
      try {
        return (await walk(stream, 1, limit)).map(advisoryOf);
      } catch (error) {
        ifGone(error);
        await ensureAdvisories(jsm, link, settings);
        return [];
      }
    },
    advisoriesSince: async () => {
      const name = advisoriesName(settings);
      const stream = await ask(`stream ${name}`, () => jsm.streams.info(name)).catch(ifGone);
      return stream && Date.parse(stream.created);
    },
    forgetAdvisory: ({ at }) => remove(advisoriesName(settings), at),
  };
}

/** How full a stream is; undefined where it has no end. */
export function fillOf({ state, config }: StreamInfo): Fill | undefined {
  return config.max_bytes > 0 ? { bytes: state.bytes, limit: config.max_bytes } : undefined;
}

/** Throws what is another error. */
function ifGone(error: unknown): undefined {
  if (!GONE.has(apiCode((error as Error).cause) ?? 0)) throw error;
}

function consumerOf({ created, delivered, ack_floor, paused, config }: ConsumerInfo) {
  return {
    createdAt: Date.parse(created),
    delivered: delivered.stream_seq,
    ackFloor: ack_floor.stream_seq,
    // It stays there when the pause is over.
    ...(paused && config.pause_until && { pausedUntil: Date.parse(config.pause_until) }),
  };
}

function kept({ seq, header, subject, data, timestamp }: StoredMsg): KeptMessage {
  return { seq, headers: headerMap(header), subject, data, at: Date.parse(timestamp) };
}

/** What can't be read names no queue: whoever deals with it forgets it. */
function advisoryOf(message: StoredMsg): Advisory {
  const read = () => {
    try {
      return message.json<Record<string, unknown>>();
    } catch {
      return {};
    }
  };
  const { stream = "", stream_seq, deliveries } = read();
  return { at: message.seq, queue: String(stream), seq: Number(stream_seq), deliveries: Number(deliveries) };
}

export function headerMap(headers: MsgHdrs | undefined): ReadonlyMap<string, string> {
  return new Map(headers?.keys().map((key) => [key, headers.get(key)]));
}
