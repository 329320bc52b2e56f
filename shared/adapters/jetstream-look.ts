import type { JetStreamManager, StoredMsg } from "@nats-io/jetstream";
import type { MsgHdrs } from "@nats-io/nats-core";
import type { Advisory, Bus, KeptMessage } from "../ports/bus.ts";
import { consumerName, type Queue, queueNamed, streamName } from "../task/names.ts";
import type { Settings } from "../task/settings.ts";
import { advisoriesName, ensureAdvisories } from "./jetstream-queue.ts";
import { apiCode, GONE, missing, NO_MESSAGE } from "./nats-errors.ts";
import type { Link } from "./nats-link.ts";

/** No such message: 10043 where it was deleted before, 10057 where its sequence is not in the stream. */
const DELETED = new Set([NO_MESSAGE, 10043, 10057]);

const millis = (nanos: number | undefined) => (nanos ?? 0) / 1_000_000;

/** The bus for those who look at queues from outside: the dispatcher, the reconciliation, people. */
export function looks(
  jsm: JetStreamManager,
  link: Link,
  settings: Settings,
): Pick<Bus, "queues" | "inspect" | "survivors" | "remove" | "advisories" | "forgetAdvisory"> {
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

  const walk = async (stream: string, from: number, limit: number): Promise<StoredMsg[]> => {
    const found: StoredMsg[] = [];
    while (found.length < limit) {
      const next = await nextFrom(stream, Math.max(1, from));
      if (!next) break;
      found.push(next);
      from = next.seq + 1;
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
        ask(`consumer of ${name}`, () => jsm.consumers.info(name, consumerName(queue))),
      ]);
      const { state, config } = stream;
      return {
        pending: consumer.num_pending,
        inFlight: consumer.num_ack_pending,
        redelivered: consumer.num_redelivered,
        ...(state.messages > 0 && { oldestAt: Date.parse(state.first_ts) }),
        messages: state.messages,
        firstSeq: state.first_seq,
        lastSeq: state.last_seq,
        createdAt: Date.parse(stream.created),
        consumer: {
          createdAt: Date.parse(consumer.created),
          delivered: consumer.delivered.stream_seq,
          ackFloor: consumer.ack_floor.stream_seq,
          ackWait: millis(consumer.config.ack_wait),
          maxDeliver: consumer.config.max_deliver ?? -1,
        },
        duplicateWindow: millis(config.duplicate_window),
      };
    },
    survivors: async (queue, from, limit) => (await walk(streamName(queue), from, limit)).map(kept),
    remove: (queue, seq) => remove(streamName(queue), seq),
    advisories: async (limit) => {
      const stream = advisoriesName(settings);
      try {
        return (await walk(stream, 1, limit)).map(advisoryOf);
      } catch (error) {
        if (!GONE.has(apiCode((error as Error).cause) ?? 0)) throw error;
        await ensureAdvisories(jsm, settings);
        return [];
      }
    },
    forgetAdvisory: ({ at }) => remove(advisoriesName(settings), at),
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
