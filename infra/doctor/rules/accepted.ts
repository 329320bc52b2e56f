import type { ConsumerConfig, StreamConfig } from "@nats-io/jetstream";
import { isEnough } from "../../../shared/adapters/jetstream/nats-version.ts";
import { type Contract, ms, span } from "../contract.ts";
import type { Found, Rule } from "../rule.ts";

const LEAST_TIME = 100_000_000;

/** When it is refused, with which code; the field, what it is, what to set. */
type Refusal = readonly [when: boolean | undefined, refused: number, field: string, is: string, set: string];

const INVALID = 10052;

const isBelow = (time: number, least: number) => time < 0 || (time > 0 && time < least);

/** Of a stream, beside what other rules say. */
function ofStream(config: Partial<StreamConfig>): Refusal[] {
  const { max_age = 0, duplicate_window = 0, num_replicas = 1, max_msgs_per_subject = 0 } = config;
  const { discard = "old", discard_new_per_subject: isPerSubject, mirror } = config;
  return [
    [config.sealed, INVALID, "sealed", "sealed is true: a new stream can't be", "sealed: false"],
    [
      isPerSubject && discard !== "new",
      INVALID,
      "discard_new_per_subject",
      `discard_new_per_subject is true, and discard ${discard}`,
      "discard: new",
    ],
    [
      isPerSubject && discard === "new" && max_msgs_per_subject <= 0,
      INVALID,
      "max_msgs_per_subject",
      "discard_new_per_subject is true, and max_msgs_per_subject no limit",
      "max_msgs_per_subject: 1",
    ],
    [
      isBelow(max_age, LEAST_TIME),
      INVALID,
      "max_age",
      `max_age is ${span(ms(max_age))}`,
      "max_age: 0, or 100ms and more",
    ],
    [
      isBelow(duplicate_window, LEAST_TIME),
      INVALID,
      "duplicate_window",
      `duplicate_window is ${span(ms(duplicate_window))}`,
      "duplicate_window: 100ms or more",
    ],
    [
      config.deny_purge && config.allow_rollup_hdrs,
      INVALID,
      "allow_rollup_hdrs",
      "allow_rollup_hdrs and deny_purge are both true",
      "allow_rollup_hdrs: false",
    ],
    [num_replicas > 5, INVALID, "num_replicas", `num_replicas is ${num_replicas}`, "num_replicas: 1, 3 or 5"],
    [
      mirror !== undefined && (config.subjects?.length ?? 0) > 0,
      10034,
      "mirror",
      `it is a mirror of ${mirror?.name}, and has subjects`,
      "subjects: none",
    ],
  ];
}

/** Of a consumer. */
function ofConsumer(
  config: Partial<ConsumerConfig>,
  stream: Partial<StreamConfig> | undefined,
  server: string | undefined,
): Refusal[] {
  const {
    ack_policy = "none",
    deliver_policy = "all",
    deliver_subject: isPush,
    max_ack_pending = 0,
  } = config;
  const { idle_heartbeat = 0, max_expires = 0, max_waiting = 0, filter_subject, opt_start_seq } = config;
  // Servers before 2.10 drop filter_subjects without a word.
  const filters = !server || isEnough(server) ? (config.filter_subjects ?? []) : [];
  const isWorkQueue = stream?.retention === "workqueue";
  const delivers = `deliver_policy is ${deliver_policy}`;
  return [
    [
      isWorkQueue && ack_policy !== "explicit",
      ack_policy === "none" && !isPush ? 10084 : 10098,
      "ack_policy",
      `ack_policy is ${ack_policy}, on a work queue`,
      "ack_policy: explicit",
    ],
    [
      isWorkQueue && deliver_policy !== "all",
      10101,
      "deliver_policy",
      `${delivers}, on a work queue`,
      "deliver_policy: all",
    ],
    [
      Boolean(isPush) && ack_policy === "none" && max_ack_pending > 0,
      10082,
      "max_ack_pending",
      `max_ack_pending is ${max_ack_pending}, and nothing is acked`,
      "max_ack_pending: leave it out",
    ],
    [
      Boolean(isPush) && max_waiting > 0,
      10080,
      "max_waiting",
      `max_waiting is ${max_waiting}, and messages are pushed to ${isPush}`,
      "max_waiting: leave it out",
    ],
    [
      deliver_policy === "last_per_subject" && !filter_subject && filters.length === 0,
      10094,
      "deliver_policy",
      `${delivers}, without a filter`,
      'filter_subject: ">"',
    ],
    [
      deliver_policy === "by_start_sequence" && !opt_start_seq,
      10094,
      "opt_start_seq",
      `${delivers}, without opt_start_seq`,
      "opt_start_seq: 1",
    ],
    [
      deliver_policy !== "by_start_sequence" && Boolean(opt_start_seq),
      10094,
      "opt_start_seq",
      `opt_start_seq is ${opt_start_seq}, and ${delivers}`,
      "deliver_policy: by_start_sequence",
    ],
    [
      Boolean(filter_subject) && filters.length > 0,
      10136,
      "filter_subjects",
      "filter_subject and filter_subjects are both set",
      "filter_subjects: with all of them",
    ],
    [
      Boolean(isPush) && config.flow_control && !idle_heartbeat,
      10108,
      "idle_heartbeat",
      "flow_control is true, without an idle_heartbeat",
      "idle_heartbeat: 5s",
    ],
    [
      Boolean(isPush) && isBelow(idle_heartbeat, LEAST_TIME),
      10083,
      "idle_heartbeat",
      `idle_heartbeat is ${span(ms(idle_heartbeat))}`,
      "idle_heartbeat: 100ms or more",
    ],
    [
      !isPush && isBelow(max_expires, 1_000_000),
      10115,
      "max_expires",
      `max_expires is ${span(ms(max_expires))}`,
      "max_expires: 1ms or more",
    ],
  ];
}

const found = (part: string, list: readonly Refusal[]): Found[] =>
  list.flatMap(([when, refused, field, is, set]) =>
    when ? [{ field: `${part}.${field}`, is, set, refused }] : [],
  );

/** What nats-server refuses, beside what the rules above it say. */
export const acceptedRules = {
  "server-refuses": {
    checks: "the configuration against what nats-server takes",
    prevents:
      "The stream or consumer is not made, or not changed; whoever goes on after the error has the old one, or none.",
    severity: "error",
    mend: "Correct the field that is named.",
    find: ({ stream, consumer, server }) => [
      ...found("stream", stream ? ofStream(stream) : []),
      ...found("consumer", consumer ? ofConsumer(consumer, stream, server) : []),
    ],
  },
} as const satisfies Record<string, Rule<Contract>>;
