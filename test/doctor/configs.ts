import type { ConsumerConfig, StreamConfig } from "@nats-io/jetstream";
import fc from "fast-check";

/** A configuration as somebody may write it, wrong in one way or another, or not at all. Times are in nanoseconds. */
export interface Made {
  readonly stream: Partial<StreamConfig>;
  readonly consumer: Partial<ConsumerConfig>;
}

const S = 1_000_000_000;

/** In one configuration of six; in three of four. */
const seldom = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary });
const often = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined, freq: 4 });

const stream = fc.record({
  subjects: fc.constant<string[]>(["q.*"]),
  storage: fc.constant("memory" as const),
  retention: often(
    fc.constantFrom("workqueue" as const, "workqueue" as const, "limits" as const, "interest" as const),
  ),
  discard: often(fc.constantFrom("old" as const, "new" as const, "new" as const)),
  discard_new_per_subject: seldom(fc.boolean()),
  max_msgs_per_subject: often(fc.constantFrom(-1, 0, 1, 1, 1000)),
  max_msgs: often(fc.constantFrom(-1, 0, 10)),
  max_age: often(fc.constantFrom(0, 0, S / 20, 60 * S, 604_800 * S)),
  duplicate_window: often(fc.constantFrom(0, S / 20, S / 10, 60 * S, 120 * S, 3600 * S)),
  num_replicas: seldom(fc.constantFrom(0, 1, 1, 1, 6)),
  deny_purge: seldom(fc.boolean()),
  allow_rollup_hdrs: seldom(fc.boolean()),
  sealed: seldom(fc.constantFrom(false, false, false, true)),
});

const consumer = fc.record({
  durable_name: fc.constant("c"),
  ack_policy: fc.constantFrom(
    "explicit" as const,
    "explicit" as const,
    "explicit" as const,
    "all" as const,
    "none" as const,
  ),
  deliver_policy: often(
    fc.constantFrom(
      "all" as const,
      "all" as const,
      "all" as const,
      "new" as const,
      "last_per_subject" as const,
      "by_start_sequence" as const,
    ),
  ),
  opt_start_seq: seldom(fc.constantFrom(0, 0, 0, 1)),
  ack_wait: often(fc.constantFrom(S, 30 * S, 300 * S)),
  max_deliver: often(fc.constantFrom(-1, 0, 1, 2, 3, 10)),
  backoff: fc.option(fc.array(fc.constantFrom(S, 30 * S, 120 * S), { maxLength: 3 }), {
    nil: undefined,
    freq: 2,
  }),
  max_ack_pending: often(fc.constantFrom(-1, 0, 1, 100)),
  max_waiting: seldom(fc.constantFrom(0, 16)),
  flow_control: seldom(fc.constantFrom(false, false, false, true)),
  idle_heartbeat: seldom(fc.constantFrom(0, 0, 0, S / 20, 5 * S)),
  inactive_threshold: seldom(fc.constantFrom(0, 60 * S)),
  rate_limit_bps: seldom(fc.constantFrom(0, 0, 0, 1000)),
  max_expires: seldom(fc.constantFrom(0, 100, 30 * S)),
  deliver_subject: seldom(fc.constantFrom("", "", "out")),
  filter_subject: seldom(fc.constantFrom("", "q.a")),
  filter_subjects: seldom(fc.constantFrom<string[]>([], [], ["q.b"])),
});

/** What was left out is not there. */
const tidy = <T extends object>(config: T): T =>
  Object.fromEntries(Object.entries(config).filter(([, value]) => value !== undefined)) as T;

export const configurations: fc.Arbitrary<Made> = fc
  .record({ stream, consumer })
  .map((made) => ({ stream: tidy(made.stream), consumer: tidy(made.consumer) }) as Made);
