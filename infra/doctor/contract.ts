import type { ConsumerConfig, StreamConfig } from "@nats-io/jetstream";
import { showDuration } from "../../shared/values/duration.ts";
import type { Application } from "./application.ts";

/** Where a field is said. */
export type Part = "stream" | "consumer" | "application" | "server";

/** How a queue is set up and used: what is left out is not known. Configurations are as the server has them, in nanoseconds. */
export interface Contract {
  readonly name: string;
  readonly stream?: Partial<StreamConfig>;
  readonly consumer?: Partial<ConsumerConfig>;
  readonly application: Application;
  /** The version of the server. */
  readonly server?: string;
  readonly seen?: Seen;
  /** Fields that no JetStream has, each with the one that was meant. */
  readonly unknown: readonly Unknown[];
}

export interface Unknown {
  readonly part: Part;
  readonly field: string;
  readonly meant?: string;
}

/** What a server says of a stream and a consumer that it has, beside their configurations. */
export interface Seen {
  /** Messages that left the stream. */
  readonly gone?: number;
  /** Deliveries that the consumer ever made, and since when. */
  readonly delivered?: number;
  readonly consumerCreated?: string;
}

const DEFAULT_ACK_WAIT = 30_000;

export const ms = (nanos: number) => nanos / 1_000_000;

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** Milliseconds as they may be written in a configuration, by their two largest units: 16h40m. */
export function span(time: number): string {
  if (time === Number.POSITIVE_INFINITY) return "for ever";
  if (time > 0 && time < 1) return `${Math.round(time * 1_000_000)}ns`;
  const at = UNITS.findIndex(([, unit]) => time >= unit);
  const [large, small] = [UNITS[at], UNITS[at + 1]];
  if (!large || !small) return showDuration(time);
  const [name, unit] = large;
  const rest = Math.floor((time % unit) / small[1]);
  return `${Math.floor(time / unit)}${name}${rest > 0 ? `${rest}${small[0]}` : ""}`;
}

/** Where the server says that it gave up on a message of a stream and a consumer. */
export const GAVE_UP = "$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES";

/** How long the server waits for a word about a delivery, in milliseconds. */
export interface Waits {
  readonly first: number;
  readonly shortest: number;
  /** From the first delivery to the end of the last one's wait. */
  readonly total: number;
}

/** With a backoff, delivery n waits for its nth time, or the last; ack_wait is not asked. */
export function waitsOf({ ack_wait, backoff = [], max_deliver }: Partial<ConsumerConfig>): Waits {
  const waits = backoff.length > 0 ? backoff.map(ms) : [ack_wait ? ms(ack_wait) : DEFAULT_ACK_WAIT];
  const [first = 0] = waits;
  const last = waits.at(-1) ?? 0;
  const deliveries = isUnlimited(max_deliver) ? Number.POSITIVE_INFINITY : (max_deliver as number);
  const listed = waits.slice(0, deliveries);
  const total = listed.reduce((sum, one) => sum + one, 0) + last * (deliveries - listed.length || 0);
  return { first, shortest: Math.min(...listed), total };
}

/** The server takes 0 and less for no limit. */
export const isUnlimited = (limit: number | undefined) => limit === undefined || limit <= 0;

/** Messages are work that somebody has to do, and not a record of what was. */
export const isWork = ({ stream, consumer }: Contract) =>
  stream?.retention === "workqueue" || stream?.retention === "interest" || consumer !== undefined;

/** Whether messages leave when they are acked, so that what left before is lost. */
export const isQueue = ({ stream }: Contract) =>
  stream?.retention === "workqueue" || stream?.retention === "interest";

/** Where the version decides and nobody said it, a rule only warns. */
export const unsure = (server: string | undefined) => (server ? {} : ({ severity: "warning" } as const));

export const isVersion = (text: string): boolean => /^v?\d+\.\d+/.test(text);
