import { type JetStreamManager, RetentionPolicy, StorageType, type StreamConfig } from "@nats-io/jetstream";
import { isPawlError, messageOf, PawlError } from "../../errors/errors.ts";
import { type FieldDifference, type Fields, isUnsafe } from "../../ports/queue-fields.ts";
import type { Settings } from "../../settings/settings.ts";
import { advisoriesName, consumerName, type Queue, streamName } from "../../task/names.ts";
import { consumerConfig, STORE, streamConfig, streamFields } from "./definition.ts";
import { cannotChange, differences, isEmpty, listed, shown } from "./drift.ts";
import { apiCode, busError, NO_ROOM } from "./nats-errors.ts";
import type { Link } from "./nats-link.ts";

const NOT_FOUND = new Set([10014, 10059]);

const STREAM_FIXED = ["retention", "storage"];
const CONSUMER_FIXED = ["ack_policy", "deliver_policy", "replay_policy", "max_waiting"];

/**
 * Creates what is missing, corrects what differs, reads back and compares. Returns what was changed. Told to create only,
 * it corrects what is unsafe about the consumer all the same, and says whose a stream is that says nothing. A stream of
 * another store is left alone: `store` is where this deployment has its documents.
 */
export async function ensureQueue(
  jsm: JetStreamManager,
  link: Link,
  queue: Queue,
  settings: Settings,
  store: string,
  how: "correct" | "create",
): Promise<string[]> {
  const name = streamName(queue);
  const runner = consumerName(settings);
  const wanted = consumerConfig(settings);
  const stream = await ensure(link, {
    what: `stream ${name}`,
    wanted: { ...streamConfig(queue, settings), [STORE]: store },
    fixed: STREAM_FIXED,
    isCorrected: ({ field }) => how === "correct" || field === STORE,
    read: async () => {
      const there = streamFields((await jsm.streams.info(name)).config);
      checkStore(name, there[STORE], store);
      return there;
    },
    add: async ({ [STORE]: owner, ...config }) =>
      streamFields((await jsm.streams.add({ name, ...config, metadata: { [STORE]: owner } })).config),
    update: async ({ [STORE]: owner, ...config }, there) => {
      // Copies are never given up: who asks for fewer may only be missing the setting.
      const num_replicas = Math.max(config.num_replicas ?? 1, Number(there.num_replicas));
      const metadata = owner && { metadata: { ...(there.metadata as object), [STORE]: owner } };
      return streamFields((await jsm.streams.update(name, { ...config, num_replicas, ...metadata })).config);
    },
  });
  const consumer = await ensure(link, {
    what: `consumer ${runner} of ${name}`,
    wanted,
    fixed: CONSUMER_FIXED,
    isCorrected: (difference, there) =>
      how === "correct" ||
      (isUnsafe(difference, there, wanted) && !CONSUMER_FIXED.includes(difference.field)),
    read: async () => (await jsm.consumers.info(name, runner)).config as unknown as Fields,
    add: async (config) =>
      (await jsm.consumers.add(name, { durable_name: runner, ...sent(config) })).config as unknown as Fields,
    update: async (config) =>
      (await jsm.consumers.update(name, runner, sent(config))).config as unknown as Fields,
  });
  return [...stream, ...consumer];
}

/** Each would take messages whose documents the other has, and make dead letters of them. */
function checkStore(name: string, owner: unknown, store: string): void {
  if (owner === undefined || owner === store) return;
  throw new PawlError(
    "stores_differ",
    `stream ${name} belongs to a deployment whose documents are in ${String(owner)}, and this one's are in ${store}. Give one of them another PAWL_NAMESPACE, or correct PAWL_STORE and GOOGLE_CLOUD_PROJECT. If the documents were moved on purpose, drain the queue first, then set PAWL_GENERATION one higher`,
  );
}

/** What is unsafe about a consumer, in words; empty where nothing is. */
export function unsafeDrift(there: Fields, settings: Settings): string {
  const wanted = consumerConfig(settings);
  return listed(differences(wanted, there).filter((one) => isUnsafe(one, there, wanted)));
}

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
  return ensure(link, {
    what: `stream ${name}`,
    wanted: config,
    fixed: STREAM_FIXED,
    isCorrected: () => true,
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
  readonly what: string;
  readonly wanted: Config;
  /** Fields that the server does not change. */
  readonly fixed: readonly string[];
  isCorrected(difference: FieldDifference, there: Fields): boolean;
  read(): Promise<Fields>;
  add(config: Config): Promise<Fields>;
  update(config: Partial<Config>, there: Fields): Promise<Fields>;
}

async function ensure<Config extends object>(link: Link, resource: Resource<Config>): Promise<string[]> {
  const { what, wanted, fixed } = resource;
  let drift: FieldDifference[] = [];
  try {
    const there = await link(() => resource.read()).catch((error: unknown) => {
      if (!NOT_FOUND.has(apiCode(error) ?? 0)) throw error;
    });
    if (!there) {
      // Another process may create it between the two requests; adding the same again is no error.
      compare(what, wanted, await link(() => resource.add(wanted)));
      return [`created ${what}`];
    }
    drift = differences(wanted, there).filter((one) => resource.isCorrected(one, there));
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
  if (code === NO_ROOM) {
    return new PawlError(
      "bus_refused",
      `${what}: the NATS server has no such storage left to set aside (${messageOf(error)}). Set PAWL_QUEUE_BYTES lower, or raise the server's max_file_store`,
    );
  }
  return busError(error, what);
}
