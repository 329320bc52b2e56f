import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import { type Config, configOf, storeIdentity } from "../../../functions/wiring/config.ts";
import { connectNats } from "../../../functions/wiring/wire.node.ts";
import { differences } from "../../../shared/adapters/jetstream/drift.ts";
import { jetstreamBus } from "../../../shared/adapters/jetstream/jetstream.ts";
import { apiCode, busError, GONE } from "../../../shared/adapters/jetstream/nats-errors.ts";
import { inspectCalmly, leftQueues } from "../../../shared/dispatch/queues.ts";
import { isPawlError, messageOf } from "../../../shared/errors/errors.ts";
import type { Bus } from "../../../shared/ports/bus.ts";
import { systemClock } from "../../../shared/ports/clock.ts";
import type { Fields } from "../../../shared/ports/queue-fields.ts";
import { natsServers } from "../../../shared/settings/servers.ts";
import { makeSettings } from "../../../shared/settings/settings.ts";
import type { Env } from "../../../shared/settings/variable.ts";
import { readVariables } from "../../../shared/settings/variables.ts";
import { agentBucket, bucketName, streamName } from "../../../shared/task/names.ts";
import { type KnownAgent, knownAgents } from "../../agents.ts";
import { syncAt } from "../by-name.ts";
import { secretsMissing, unreached } from "./around.ts";
import { ahead, asking, type Seen } from "./ask.ts";
import type { Live } from "./live.ts";
import { lookAtRights } from "./rights.ts";
import { lookAtStore } from "./store.ts";

/** What was looked at, and what could not be. */
export interface Gathered {
  readonly live: Live;
  /** None where the settings are wrong. */
  readonly config?: Config;
  readonly unseen: readonly string[];
}

export interface Place {
  readonly env: Env;
  /** The folder of agents. */
  readonly agents: string;
  /** The folder that `pawl creds` wrote into. */
  readonly creds: string;
  /** The address of NATS's monitoring. */
  readonly monitor?: string;
}

/** Without a server the numbers can be looked at all the same. */
const UNCONFIGURED: Env = { NATS_URL: "nats://127.0.0.1:4222", PAWL_STORE: "nats-kv" };

/** One look at a deployment, which is changed by none of it. */
export async function gather({ env, agents: folder, creds, monitor }: Place): Promise<Gathered> {
  const { given, malformed } = readVariables(env);
  const isConfigured = "NATS_URL" in given || malformed.has("NATS_URL");
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value));
  const reading = readVariables(isConfigured ? env : { ...UNCONFIGURED, ...set });
  const unseen: string[] = [];
  const [config, problems] = configured(reading);
  const settings = config?.settings ?? makeSettings();
  const live: Seen = {
    ...{ now: Date.now(), settings, problems, isLocal: config ? isLocal(config) : true },
    ...{ queues: [], left: [], buckets: [], clocks: {}, refused: [], unreached: [], overdue: [], rights: [] },
    secrets: await secretsMissing(folder, env),
  };
  if (!config) return { live, unseen: [...unseen, "NATS and the store, until the settings are right"] };
  live.unreached = await unreached(config, unseen);
  if (!isConfigured) return { live, config, unseen: [...unseen, "NATS and the store: NATS_URL is not set"] };
  if (monitor) live.sync = await syncAt(monitor);
  const known = await knownAgents(folder, "skip-broken");
  const nc = await connectNats(config);
  try {
    const { version = "", cluster, auth_required, tls_verify } = { ...nc.info };
    live.nats = { version, asksWho: Boolean(auth_required || tls_verify), ...(cluster && { cluster }) };
    const bus = await jetstreamBus(nc, settings, storeIdentity(config));
    await lookAtNats(live, { bus, known }, unseen);
    await lookAtRights(live, { nc, env, config, known, creds }, unseen);
    // To open a bucket that is not there would make it.
    const isThere = config.store !== "nats-kv" || (await lookAtBuckets(live, nc, known, unseen));
    if (isThere) await lookAtStore(live, config, known, unseen);
  } catch (error) {
    // The version says it, as a finding.
    if (!isPawlError(error, "server_too_old")) throw error;
    unseen.push("everything else, of a server that is too old");
  } finally {
    await nc.close();
  }
  return { live, config, unseen };
}

function configured(reading: ReturnType<typeof readVariables>): [Config | undefined, readonly string[]] {
  try {
    return [configOf(reading), []];
  } catch (error) {
    if (!isPawlError(error, "setting_invalid")) throw error;
    return [undefined, messageOf(error).split("\n")];
  }
}

/** All of its addresses are of this machine. */
const isLocal = ({ nats }: Config) =>
  natsServers(nats.url).every((url) => /^(localhost|127\.|\[::1\])/.test(new URL(url).hostname));

interface AtNats {
  readonly bus: Bus;
  readonly known: readonly KnownAgent[];
}

async function lookAtNats(live: Seen, { bus, known }: AtNats, unseen: string[]): Promise<void> {
  const { settings } = live;
  const ask = asking(live);
  const deps = { bus, settings, clock: systemClock };
  const { namespace, generation } = settings;
  const own = known.flatMap(({ name: agent, lanes }) =>
    Array.from({ length: lanes }, (_, lane) => ({ namespace, agent, lane, generation })),
  );
  const missing: string[] = [];
  for (const queue of own) {
    const stream = streamName(queue);
    const before = Date.now();
    const info = await ask(`looking at ${stream}`, () =>
      inspectCalmly(deps, queue).catch((error: unknown) => {
        if (!isPawlError(error, "queue_gone")) throw error;
        missing.push(stream);
      }),
    );
    if (info) {
      live.queues = [...live.queues, { stream, info }];
      live.clocks = { ...live.clocks, NATS: ahead(info.now, before) };
    }
  }
  if (missing.length > 0) unseen.push(`${missing.join(", ")}: not there yet`);
  live.left = (await ask("listing streams", () => leftQueues(deps, known))) ?? [];
  const since = await ask("looking at the stream of advisories", async () => ({
    at: await bus.advisoriesSince(),
  }));
  // Made with the first queue.
  if (since && live.queues.length > 0) live.isCaptured = since.at !== undefined;
}

/** Whether all are there. */
async function lookAtBuckets(
  live: Seen,
  nc: NatsConnection,
  known: readonly KnownAgent[],
  unseen: string[],
): Promise<boolean> {
  const { settings } = live;
  const jsm = await jetstreamManager(nc, { timeout: settings.requestTimeout, checkAPI: false });
  const own = settings.isolation === "shared" ? [] : known.map(({ name }) => agentBucket(settings, name));
  const streams = [bucketName(settings), ...own].map((name) => `KV_${name}`);
  const wanted = {
    ...{ storage: "file", discard: "new", max_age: 0, max_msgs_per_subject: 1, allow_direct: false },
    num_replicas: settings.replicas,
  };
  const missing: string[] = [];
  for (const name of streams) {
    const there = await asking(live)(`looking at ${name}`, () =>
      jsm.streams.info(name).catch((error: unknown) => {
        if (!GONE.has(apiCode(error) ?? 0)) throw busError(error, name);
        missing.push(name);
      }),
    );
    const config = there?.config as Fields | undefined;
    if (config) live.buckets = [...live.buckets, { name, differences: differences(wanted, config) }];
  }
  if (missing.length > 0) unseen.push(`${missing.join(", ")}: not there yet`);
  return live.buckets.length === streams.length;
}
