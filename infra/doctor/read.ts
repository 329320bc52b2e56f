import type { ConsumerConfig, StreamConfig } from "@nats-io/jetstream";
import { PawlError } from "../../shared/errors/errors.ts";
import { parseJson } from "../../shared/values/json.ts";
import type { Application } from "./application.ts";
import { type Contract, isVersion, type Seen, type Unknown } from "./contract.ts";
import { applicationIn, configIn, type Fields, isFields, unknownIn } from "./fields.ts";

/** A file's name and its text, as whoever calls has read it. */
export interface Source {
  readonly file: string;
  readonly text: string;
}

/** What was said, of streams and consumers as whole information or `{ config }`. */
export interface Parts {
  readonly streams: Fields[];
  readonly consumers: Fields[];
  application: Application;
  server?: string;
}

const TOGETHER = ["stream", "consumer", "consumers", "application", "server"] as const;
/** By which a bare configuration is known. */
const OF_CONSUMERS = [
  "ack_policy",
  "durable_name",
  "deliver_policy",
  "ack_wait",
  "max_deliver",
  "backoff",
  "max_ack_pending",
];
const OF_STREAMS = [
  "subjects",
  "retention",
  "discard",
  "storage",
  "max_age",
  "duplicate_window",
  "max_msgs_per_subject",
  "mirror",
  "sources",
];

/** What one or several files say of a stream, its consumers, and who uses them. */
export function partsIn(sources: readonly Source[]): Parts {
  const parts: Parts = { streams: [], consumers: [], application: {} };
  for (const { file, text } of sources) {
    try {
      take(parts, parseJson(text, "It", "usage"));
    } catch (error) {
      throw error instanceof PawlError ? new PawlError("usage", `${file}: ${error.message}`) : error;
    }
  }
  return parts;
}

function take(parts: Parts, value: unknown): void {
  if (!isFields(value)) throw new PawlError("usage", `it is no object. ${ACCEPTED}`);
  const keys = Object.keys(value);
  if (TOGETHER.some((one) => one in value)) takeTogether(parts, value);
  else if (isFields(value.config)) {
    if ("stream_name" in value || "delivered" in value) parts.consumers.push(value);
    else parts.streams.push(value);
  } else if (OF_CONSUMERS.some((one) => one in value)) parts.consumers.push({ config: value });
  else if (OF_STREAMS.some((one) => one in value)) parts.streams.push({ config: value });
  else
    throw new PawlError(
      "usage",
      `it has ${keys.length > 0 ? keys.slice(0, 8).join(", ") : "nothing in it"}, by which it is neither a stream nor a consumer. ${ACCEPTED}`,
    );
}

const ACCEPTED =
  'It should be what `nats stream info --json` or `nats consumer info --json` prints, a bare configuration, or {"stream": …, "consumer": …, "application": …, "server": "2.10.27"}';

function takeTogether(parts: Parts, value: Fields): void {
  for (const key of Object.keys(value))
    if (!TOGETHER.some((one) => one === key)) throw unknownIn("It", key, TOGETHER);
  const { stream, consumer, consumers, application, server } = value;
  if (consumers !== undefined && !Array.isArray(consumers))
    throw new PawlError("usage", "consumers should be a list");
  if (stream !== undefined) parts.streams.push(infoOf("stream", stream));
  for (const one of [...(consumer === undefined ? [] : [consumer]), ...((consumers as unknown[]) ?? [])])
    parts.consumers.push(infoOf("consumer", one));
  if (application !== undefined) {
    if (!isFields(application)) throw new PawlError("usage", "application should be an object");
    parts.application = { ...parts.application, ...applicationIn(application) };
  }
  if (server === undefined) return;
  if (typeof server !== "string" || !isVersion(server))
    throw new PawlError(
      "usage",
      `server is ${JSON.stringify(server)}; it should be a version such as "2.10.27"`,
    );
  parts.server = server;
}

/** Whole, or bare. */
function infoOf(part: string, value: unknown): Fields {
  if (!isFields(value)) throw new PawlError("usage", `${part} should be an object`);
  return isFields(value.config) ? value : { config: value };
}

/** A contract for each consumer. */
export function contractsOf({ streams, consumers, application, server }: Parts): Contract[] {
  if (streams.length + consumers.length === 0)
    throw new PawlError(
      "usage",
      "There is no stream and no consumer in it: an application alone has nothing to be held against",
    );
  const made = (stream: Fields | undefined, consumer: Fields | undefined): Contract => {
    const own: Unknown[] = [];
    const streamConfig =
      stream && (configIn("stream", stream.config as Fields, own) as Partial<StreamConfig>);
    const consumerConfig =
      consumer && (configIn("consumer", consumer.config as Fields, own) as Partial<ConsumerConfig>);
    const seen = seenIn(stream, consumer);
    return {
      name: nameOf(streamConfig, consumerConfig, consumer),
      ...(streamConfig && { stream: streamConfig }),
      ...(consumerConfig && { consumer: consumerConfig }),
      ...(server && { server }),
      ...(seen && { seen }),
      application,
      unknown: own,
    };
  };
  const [only] = streams;
  if (consumers.length === 0) return streams.map((stream) => made(stream, undefined));
  return consumers.map((consumer) => {
    const name = consumer.stream_name;
    const named = streams.find(({ config }) => name !== undefined && (config as Fields).name === name);
    if (!named && streams.length > 1)
      throw new PawlError(
        "usage",
        `There are ${streams.length} streams, and consumer ${labelOf(consumer)} does not say which is its own: give its stream_name, or one stream at a time`,
      );
    const its = named ?? only;
    const other = its && (its.config as Fields).name;
    if (name !== undefined && other !== undefined && name !== other)
      throw new PawlError(
        "usage",
        `Consumer ${labelOf(consumer)} is of stream ${name}, and the stream given is ${other}`,
      );
    return made(its, consumer);
  });
}

const labelOf = ({ name, config }: Fields): string => {
  const { durable_name, name: own } = config as Fields;
  return String(name ?? durable_name ?? own ?? "without a name");
};

function nameOf(
  stream: Partial<StreamConfig> | undefined,
  consumer: Partial<ConsumerConfig> | undefined,
  info: Fields | undefined,
): string {
  const its = stream && (stream.name ?? "the stream");
  const label = consumer && info && labelOf(info);
  const of = label === "without a name" ? "its consumer" : label;
  return [its, of].filter(Boolean).join(" > ");
}

/** What the whole information says beside the configuration. */
function seenIn(stream: Fields | undefined, consumer: Fields | undefined): Seen | undefined {
  const state = isFields(stream?.state) ? stream.state : undefined;
  const delivered = isFields(consumer?.delivered) ? consumer.delivered : undefined;
  const [last, messages, deliveries] = [state?.last_seq, state?.messages, delivered?.consumer_seq].map(
    Number,
  );
  if (!state || !delivered || [last, messages, deliveries].some(Number.isNaN)) return undefined;
  return {
    gone: (last as number) - (messages as number),
    delivered: deliveries as number,
    consumerCreated: String(consumer?.created),
  };
}
