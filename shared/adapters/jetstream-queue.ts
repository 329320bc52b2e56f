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
import { messageOf, PawlError } from "../task/errors.ts";
import { consumerName, type Queue, streamName, subjectPrefix } from "../task/names.ts";
import type { Settings } from "../task/settings.ts";
import { apiCode, busError } from "./nats-errors.ts";
import type { Link } from "./nats-link.ts";

const NOT_FOUND = new Set([10014, 10059]);

type Fields = Readonly<Record<string, unknown>>;

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

/** Creates what is missing, corrects what differs, reads back and compares. Returns what was changed. */
export async function ensureQueue(
  jsm: JetStreamManager,
  link: Link,
  queue: Queue,
  settings: Settings,
  how: "correct" | "create",
): Promise<string[]> {
  const name = streamName(queue);
  const runner = consumerName(settings);
  const stream = await ensure(link, `stream ${name}`, streamConfig(queue, settings), STREAM_FIXED, how, {
    read: async () => (await jsm.streams.info(name)).config as unknown as Fields,
    add: async (config) => (await jsm.streams.add({ name, ...config })).config as unknown as Fields,
    update: async (config, there) => {
      // Copies are never given up: who asks for fewer may only be missing the setting.
      const num_replicas = Math.max(config.num_replicas, Number(there.num_replicas));
      return (await jsm.streams.update(name, { ...config, num_replicas })).config as unknown as Fields;
    },
  });
  const consumer = await ensure(
    link,
    `consumer ${runner} of ${name}`,
    consumerConfig(settings),
    CONSUMER_FIXED,
    how,
    {
      read: async () => (await jsm.consumers.info(name, runner)).config as unknown as Fields,
      add: async (config) => (await jsm.consumers.add(name, sent(config))).config as unknown as Fields,
      update: async (config) =>
        (await jsm.consumers.update(name, runner, sent(config))).config as unknown as Fields,
    },
  );
  return [...stream, ...consumer];
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
  return ensure(link, `stream ${name}`, config, STREAM_FIXED, "correct", {
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

function isEmpty(value: unknown): boolean {
  return (
    value === undefined ||
    value === 0 ||
    value === "" ||
    value === false ||
    (Array.isArray(value) && value.length === 0)
  );
}

interface Resource<Config> {
  read(): Promise<Fields>;
  add(config: Config): Promise<Fields>;
  update(config: Config, there: Fields): Promise<Fields>;
}

async function ensure<Config extends object>(
  link: Link,
  what: string,
  wanted: Config,
  fixed: readonly string[],
  how: "correct" | "create",
  resource: Resource<Config>,
): Promise<string[]> {
  let there: Fields | undefined;
  try {
    there = await link(() => resource.read());
  } catch (error) {
    if (!NOT_FOUND.has(apiCode(error) ?? 0)) throw failed(what, error);
  }
  try {
    if (!there) {
      // Another process may create it between the two requests; adding the same again is no error.
      compare(what, wanted, await link(() => resource.add(wanted)));
      return [`created ${what}`];
    }
    if (how === "create") return [];
    const drift = differences(wanted, there);
    if (drift.length === 0) return [];
    const stuck = drift.filter(({ field }) => fixed.includes(field));
    if (stuck.length > 0) throw cannotChange(what, stuck);
    const before = there;
    compare(what, wanted, await link(() => resource.update(wanted, before)));
    return drift.map(({ field, have, want }) => `corrected ${what}: ${field} was ${have}, is ${want}`);
  } catch (error) {
    throw failed(what, error);
  }
}

interface Difference {
  readonly field: string;
  readonly have: string;
  readonly want: string;
}

/** The server leaves out fields that are empty or zero. */
function differences(wanted: object, there: Fields): Difference[] {
  const show = (value: unknown) => JSON.stringify(value) ?? "unset";
  return Object.entries(wanted).flatMap(([field, want]) => {
    const have = there[field];
    const enough = field === "num_replicas" && (have as number) >= (want as number);
    const same = show(have) === show(want) || (isEmpty(have) && isEmpty(want)) || enough;
    return same ? [] : [{ field, have: show(have), want: show(want) }];
  });
}

/** Older servers silently drop fields they don't know, so what was echoed is compared too. */
function compare(what: string, wanted: object, echoed: Fields): void {
  const left = differences(wanted, echoed);
  if (left.length > 0) throw cannotChange(what, left);
}

function cannotChange(what: string, drift: readonly Difference[]): PawlError {
  const fields = drift.map(({ field, have, want }) => `${field} is ${have} and should be ${want}`);
  return new PawlError(
    "queue_drift",
    `${what} can't be made to match: ${fields.join("; ")}. Drain it and set PAWL_GENERATION one higher, or delete it if it is empty`,
  );
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
