import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  DiscardPolicy,
  ReplayPolicy,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import type { QueueDifference } from "../../ports/bus.ts";
import { type Fields, isUnsafe, type QueueFieldName } from "../../ports/queue-fields.ts";
import type { Settings } from "../../settings/settings.ts";
import { type Queue, subjectPrefix } from "../../task/names.ts";
import { differences, shown } from "./drift.ts";

type Definition<Config> = Partial<Config> & Partial<Record<QueueFieldName, unknown>>;

/** A work queue that loses nothing: no age, no eviction, and at most one message per task. */
export function streamConfig(queue: Queue, settings: Settings) {
  return {
    subjects: [`${subjectPrefix(queue)}*`],
    retention: RetentionPolicy.Workqueue,
    storage: StorageType.File,
    max_age: 0,
    max_msgs: -1,
    max_bytes: settings.queueBytes,
    max_msgs_per_subject: 1,
    max_msg_size: -1,
    discard: DiscardPolicy.New,
    discard_new_per_subject: true,
    duplicate_window: nanos(settings.duplicateWindow),
    num_replicas: settings.replicas,
    // Look-ups must be answered by the leader: a follower may not know yet what was published.
    allow_direct: false,
  } satisfies Definition<StreamConfig>;
}

/** No filter (its cost would grow with the backlog), no backoff (it would replace ack_wait), no inactivity limit. */
export function consumerConfig(settings: Settings) {
  return {
    ack_policy: AckPolicy.Explicit,
    deliver_policy: DeliverPolicy.All,
    replay_policy: ReplayPolicy.Instant,
    ack_wait: nanos(settings.ackWait),
    max_deliver: settings.maxDeliver,
    max_ack_pending: 1,
    max_waiting: 512,
    backoff: [] as number[],
    filter_subject: "",
    inactive_threshold: 0,
  } satisfies Definition<ConsumerConfig>;
}

/** What is left at the server's default, and looked at: these are set by no version of Pawl, and corrected by none. */
const STREAM_DEFAULTS = {
  sealed: false,
  deny_delete: false,
  no_ack: false,
  allow_rollup_hdrs: false,
  allow_msg_ttl: false,
  persist_mode: undefined,
  mirror: undefined,
  sources: [],
  republish: undefined,
  subject_transform: undefined,
} satisfies Partial<Record<QueueFieldName & keyof StreamConfig, unknown>>;

const CONSUMER_DEFAULTS = {
  filter_subjects: [],
  headers_only: false,
  rate_limit_bps: 0,
  deliver_subject: "",
  max_expires: 0,
  priority_groups: [],
  mem_storage: false,
} satisfies Partial<Record<QueueFieldName & keyof ConsumerConfig, unknown>>;

/** A stream's metadata names the store that has its tasks' documents. */
export const STORE = "pawl-store" satisfies QueueFieldName;

/** A stream's configuration with the store it belongs to as one of its fields. */
export function streamFields(config: StreamConfig): Fields {
  return { ...config, [STORE]: config.metadata?.[STORE] };
}

/** How a queue is defined, against how it should be. `consumer`: none where it is gone. */
export function queueDifferences(
  queue: Queue,
  settings: Settings,
  store: string,
  stream: StreamConfig,
  consumer: ConsumerConfig | undefined,
): QueueDifference[] {
  const there = streamFields(stream);
  // Made by an earlier version, it names none until somebody makes sure of it.
  const owner = there[STORE] === undefined ? {} : { [STORE]: store };
  return [
    ...named({ ...streamConfig(queue, settings), ...STREAM_DEFAULTS, ...owner }, there),
    ...(consumer
      ? named({ ...consumerConfig(settings), ...CONSUMER_DEFAULTS }, consumer as unknown as Fields)
      : []),
  ];
}

const LONGEST = 100;

function named(wanted: Fields, there: Fields): QueueDifference[] {
  return differences(wanted, there).map((one) => ({
    field: one.field as QueueFieldName,
    is: shown(one.field, one.have).slice(0, LONGEST),
    should: shown(one.field, one.want),
    isUnsafe: isUnsafe(one, there, wanted),
  }));
}
