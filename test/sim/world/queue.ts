import { nanos } from "@nats-io/nats-core";
import { consumerConfig } from "../../../shared/adapters/jetstream/definition.ts";
import { differences, shown } from "../../../shared/adapters/jetstream/drift.ts";
import { unsafeDrift } from "../../../shared/adapters/jetstream/queue.ts";
import type { QueueInfo } from "../../../shared/ports/bus.ts";
import { type Fields, isUnsafe, type QueueFieldName } from "../../../shared/ports/queue-fields.ts";
import type { Settings } from "../../../shared/settings/settings.ts";
import { advisoriesName, consumerName, type Queue, streamName } from "../../../shared/task/names.ts";
import type { BusWorld } from "./bus.ts";
import type { Consumer, ConsumerLimits } from "./consumer.ts";
import { Stream } from "./stream.ts";

const wantedLimits = ({ ackWait, maxDeliver }: Settings): ConsumerLimits => ({
  ackWait,
  maxDeliver,
  maxAckPending: 1,
});

/** A consumer's definition as a server would echo it. */
function fieldsOf({ limits }: Consumer, settings: Settings): Fields {
  return {
    ...consumerConfig(settings),
    ack_wait: nanos(limits.ackWait),
    max_deliver: limits.maxDeliver,
    max_ack_pending: limits.maxAckPending,
  };
}

/** What is unsafe about a consumer, in words; empty where nothing is. */
export function unsafeOf(consumer: Consumer, settings: Settings): string {
  return unsafeDrift(fieldsOf(consumer, settings), settings);
}

/** Creates what is missing and corrects what differs, as the product's adapter does on a server. */
export function ensured(world: BusWorld, queue: Queue, how: "correct" | "create"): readonly string[] {
  const { time, broker, settings, left } = world;
  const [name, runner] = [streamName(queue), consumerName(queue)];
  const changes: string[] = [];
  let stream = broker.streams.get(name);
  if (!stream) {
    const limits = { duplicateWindow: settings.duplicateWindow, bytes: settings.queueBytes };
    const advise = (seq: number, deliveries: number) => broker.advise({ queue: name, seq, deliveries });
    stream = new Stream({ name, time, limits, advise, left });
    broker.streams.set(name, stream);
    changes.push(`created stream ${name}`);
  }
  if (!stream.consumer) {
    stream.consume(wantedLimits(settings));
    changes.push(`created consumer ${runner} of ${name}`);
  } else {
    const there = fieldsOf(stream.consumer, settings);
    const wanted = consumerConfig(settings);
    const wrong = differences(wanted, there).filter(
      (one) => how === "correct" || isUnsafe(one, there, wanted),
    );
    const isWrong = (field: QueueFieldName) => wrong.some((one) => one.field === field);
    const { ackWait, maxDeliver, maxAckPending } = wantedLimits(settings);
    stream.change({
      ...(isWrong("ack_wait") && { ackWait }),
      ...(isWrong("max_deliver") && { maxDeliver }),
      ...(isWrong("max_ack_pending") && { maxAckPending }),
    });
    for (const { field, have, want } of wrong)
      changes.push(
        `corrected consumer ${runner} of ${name}: ${field} was ${shown(field, have)}, is ${shown(field, want)}`,
      );
  }
  if (how === "correct" && broker.advisoriesSince === undefined) {
    broker.advisoriesSince = time.now;
    changes.push(`created stream ${advisoriesName(queue)}`);
  }
  return changes;
}

export function inspected({ time, settings }: BusWorld, stream: Stream): QueueInfo {
  const { consumer, messages, firstSeq, lastSeq, createdAt } = stream;
  const [first] = messages.values();
  const info = consumer?.info();
  const there = consumer && fieldsOf(consumer, settings);
  const wanted = consumerConfig(settings);
  return {
    now: Math.floor(time.now),
    pending: info?.pending ?? messages.size,
    inFlight: info?.inFlight ?? 0,
    redelivered: info?.redelivered ?? 0,
    ...(first && { oldestAt: Math.floor(first.at) }),
    messages: messages.size,
    firstSeq,
    lastSeq,
    createdAt: Math.floor(createdAt),
    ...(consumer &&
      info && {
        consumer: {
          createdAt: Math.floor(consumer.createdAt),
          delivered: info.delivered,
          ackFloor: info.ackFloor,
        },
      }),
    differences: there
      ? differences(wanted, there).map((one) => ({
          field: one.field as QueueFieldName,
          is: shown(one.field, one.have),
          should: shown(one.field, one.want),
          isUnsafe: isUnsafe(one, there, wanted),
        }))
      : [],
  };
}
