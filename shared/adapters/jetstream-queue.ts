import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  DiscardPolicy,
  type JetStreamManager,
  ReplayPolicy,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from "@nats-io/jetstream";
import { nanos } from "@nats-io/nats-core";
import { isPawlError, messageOf, PawlError } from "../task/errors.ts";
import { consumerName, type Queue, streamName, subjectPrefix } from "../task/names.ts";
import type { Settings } from "../task/settings.ts";
import {
  cannotChange,
  type Difference,
  differences,
  type Fields,
  isEmpty,
  isUnsafe,
  listed,
  shown,
} from "./jetstream-drift.ts";
import { apiCode, busError } from "./nats-errors.ts";
import type { Link } from "./nats-link.ts";

const NOT_FOUND = new Set([10014, 10059]);

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
  } satisfies Partial<StreamConfig>;
}

/** No filter (its cost would grow with the backlog), no backoff (it would replace ack_wait), no inactivity limit. */
export function consumerConfig(settings: Settings) {
  return {
    durable_name: consumerName(settings),
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
  } satisfies Partial<ConsumerConfig>;
}

const STREAM_FIXED = ["retention", "storage"];
const CONSUMER_FIXED = ["ack_policy", "deliver_policy", "replay_policy", "max_waiting"];

/**
 * Creates what is missing, corrects what differs, reads back and compares. Returns what was changed. Told to create only,
 * it corrects what is unsafe about the consumer all the same.
 */
export async function ensureQueue(
  jsm: JetStreamManager,
  link: Link,
  queue: Queue,
  settings: Settings,
  how: "correct" | "create",
): Promise<string[]> {
  const name = streamName(queue);
  const runner = consumerName(settings);
  const all = () => how === "correct";
  const wanted = consumerConfig(settings);
  const stream = await ensure(link, `stream ${name}`, streamConfig(queue, settings), STREAM_FIXED, all, {
    read: async () => (await jsm.streams.info(name)).config as unknown as Fields,
    add: async (config) => (await jsm.streams.add({ name, ...config })).config as unknown as Fields,
    update: async (config, there) => {
      // Copies are never given up: who asks for fewer may only be missing the setting.
      const num_replicas = Math.max(config.num_replicas ?? 1, Number(there.num_replicas));
      return (await jsm.streams.update(name, { ...config, num_replicas })).config as unknown as Fields;
    },
  });
  const consumer = await ensure(
    link,
    `consumer ${runner} of ${name}`,
    wanted,
    CONSUMER_FIXED,
    (difference) => all() || isUnsafe(difference, wanted),
    {
      read: async () => (await jsm.consumers.info(name, runner)).config as unknown as Fields,
      add: async (config) => (await jsm.consumers.add(name, sent(config))).config as unknown as Fields,
      update: async (config) =>
        (await jsm.consumers.update(name, runner, sent(config))).config as unknown as Fields,
    },
  );
  return [...stream, ...consumer];
}

/** What is unsafe about a consumer, in words; empty where nothing is. */
export function unsafeDrift(there: Fields, settings: Settings): string {
  const wanted = consumerConfig(settings);
  return listed(differences(wanted, there).filter((difference) => isUnsafe(difference, wanted)));
}

export const advisoriesName = ({ namespace }: Pick<Settings, "namespace">) =>
  `${namespace.toUpperCase()}_advisories`;

/** What the server says when it gives up on a message is said once: this keeps it until somebody has dealt with it. */
export async function ensureAdvisories(
  jsm: JetStreamManager,
  link: Link,
  settings: Settings,
): Promise<string[]> {
  const name = advisoriesName(settings);
  const config = {
    subjects: [`$JS.EVENT.ADVISORY.CONSUMER.MAX_DELIVERIES.*.${consumerName(settings)}`],
    retention: RetentionPolicy.Limits,
    storage: StorageType.File,
    max_age: 0,
    num_replicas: settings.replicas,
    allow_direct: false,
  } satisfies Partial<StreamConfig>;
  return ensure(link, `stream ${name}`, config, STREAM_FIXED, () => true, {
    read: async () => (await jsm.streams.info(name)).config as unknown as Fields,
    add: async (wanted) => (await jsm.streams.add({ name, ...wanted })).config as unknown as Fields,
    update: async (wanted) => (await jsm.streams.update(name, wanted)).config as unknown as Fields,
  });
}

/** Empty fields as unset ones: the client would build the request's subject from an empty filter. */
function sent<Config extends object>(config: Config): Config {
  const fields = Object.entries(config).map(([key, value]) => [key, isEmpty(value) ? undefined : value]);
  return Object.fromEntries(fields) as Config;
}

interface Resource<Config> {
  read(): Promise<Fields>;
  add(config: Config): Promise<Fields>;
  update(config: Partial<Config>, there: Fields): Promise<Fields>;
}

async function ensure<Config extends object>(
  link: Link,
  what: string,
  wanted: Config,
  fixed: readonly string[],
  isCorrected: (difference: Difference) => boolean,
  resource: Resource<Config>,
): Promise<string[]> {
  let drift: Difference[] = [];
  try {
    const there = await link(() => resource.read()).catch((error: unknown) => {
      if (!NOT_FOUND.has(apiCode(error) ?? 0)) throw error;
    });
    if (!there) {
      // Another process may create it between the two requests; adding the same again is no error.
      compare(what, wanted, await link(() => resource.add(wanted)));
      return [`created ${what}`];
    }
    drift = differences(wanted, there).filter(isCorrected);
    if (drift.length === 0) return [];
    const stuck = drift.filter(({ field }) => fixed.includes(field));
    if (stuck.length > 0) throw cannotChange(what, stuck);
    const change = Object.fromEntries(drift.map(({ field, want }) => [field, want])) as Partial<Config>;
    compare(what, change, await link(() => resource.update(change, there)));
  } catch (error) {
    throw failed(
      drift.length > 0 && !isPawlError(error) ? `${what}: ${listed(drift)}; correcting it` : what,
      error,
    );
  }
  return drift.map(
    ({ field, have, want }) =>
      `corrected ${what}: ${field} was ${shown(field, have)}, is ${shown(field, want)}`,
  );
}

/** Older servers silently drop fields they don't know, so what was echoed is compared too. */
function compare(what: string, wanted: object, echoed: Fields): void {
  const left = differences(wanted, echoed);
  if (left.length > 0) throw cannotChange(what, left);
}

function failed(what: string, error: unknown): PawlError {
  const code = apiCode(error);
  if (code === 10065) {
    return new PawlError(
      "queue_drift",
      `${what}: another stream has its subjects (${messageOf(error)}). Delete that one`,
    );
  }
  if (code === 10074 || code === 10005) {
    return new PawlError(
      "bus_refused",
      `${what}: ${messageOf(error)}. Set PAWL_REPLICAS to what the cluster has`,
    );
  }
  return busError(error, what);
}
