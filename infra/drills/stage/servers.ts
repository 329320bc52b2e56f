import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configFrom } from "../../../functions/wiring/config.ts";
import { PawlError } from "../../../shared/errors/errors.ts";
import { protocolVariables } from "../../../shared/settings/protocol.ts";
import { type Settings, settingsFrom } from "../../../shared/settings/settings.ts";
import type { Variable } from "../../../shared/settings/variable.ts";
import { variables } from "../../../shared/settings/variables.ts";
import { parseDuration, showDuration } from "../../../shared/values/duration.ts";
import { HOW_TO_GET, startEmulator } from "../../local/emulator.ts";
import { findNatsServer } from "../../local/find-nats.ts";
import { type LocalNats, type LocalNatsOptions, startNats } from "../../local/nats-server.ts";
import type { Facts } from "../facts.ts";
import { type Cluster, type ClusterNode, startCluster } from "../faults/cluster.ts";

/** Where a drill takes place: on servers of ours that are thrown away, or on somebody's. */
export interface Servers extends AsyncDisposable {
  /** "a throw-away local stack", or whose. */
  readonly name: string;
  /** The protocol's numbers that hold there, as one sets them. */
  readonly settings: Readonly<Record<string, string>>;
  /** Several drills at once: each has a namespace of its own. */
  readonly isOurs: boolean;
  /** Why this drill can't take place here, for a person to read. */
  missing(drill: Facts): Promise<string | undefined>;
  open(drill: Facts): Promise<Place>;
}

/** The servers of one drill. */
export interface Place extends AsyncDisposable {
  /** Of its processes: where everything is. */
  readonly env: Readonly<Record<string, string>>;
  readonly nats?: LocalNats;
  readonly cluster?: Cluster;
  /** The server that leads the cluster: the drill's processes are at the others, unless they say so. */
  readonly alone?: ClusterNode;
  /** Gives a server whose storage was limited all that there is. */
  readonly makeRoom?: () => Promise<void>;
}

/** Short, so that a drill takes seconds. */
const SETTINGS = { PAWL_ACK_WAIT: "2s", PAWL_STOP_GRACE: "1s" };
/** An election takes 4 to 7 s, and a lease of less than 2 s lapses in each: no start of those is a crash. */
const CLUSTER = { PAWL_REPLICAS: "3", PAWL_CRASH_LIMIT: "50" };

/** Asked for by several at once, it is made once. */
function memo<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** What a server has answered is on its disk. */
const SAFE: LocalNatsOptions = { sync: "always" };

type StartNats = (options: LocalNatsOptions) => Promise<LocalNats>;

/** A server that may keep so much and no more, until it is given room. */
async function limitedServer(start: StartNats, most: string) {
  const folder = await mkdtemp(join(tmpdir(), "pawl-drill-nats-"));
  const storage = (limit: string) => `jetstream { store_dir: "${folder}", max_file_store: ${limit} }`;
  const nats = await start({ folder, config: storage(most) });
  return {
    nats,
    makeRoom: () => nats.reload(storage("20GB")),
    [Symbol.asyncDispose]: async () => {
      await nats.stop();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Started when the first drill wants them, and stopped with the last. */
export function ownServers(tell: (line: string) => void): Servers {
  const stack = new AsyncDisposableStack();
  const found = memo(() => findNatsServer(process.env, tell));
  const start = async (options: LocalNatsOptions = {}) => startNats({ ...options, binary: await found() });
  const shared = memo(async () => stack.use(await start()));
  const firestore = memo(async () => {
    const emulator = await startEmulator();
    if (emulator) stack.use(emulator);
    return emulator;
  });
  return {
    name: "a throw-away local stack",
    settings: shownSettings(SETTINGS),
    isOurs: true,
    missing: async ({ needs }) => {
      // Without a nats-server there is no drill at all, which is said once.
      await found();
      return needs.includes("firestore") && !(await firestore())
        ? `it needs the Firestore emulator. Get it: ${HOW_TO_GET}`
        : undefined;
    },
    open: async ({ needs, env, storage }) => {
      await using starting = new AsyncDisposableStack();
      const namespace = `d-${crypto.randomUUID().slice(0, 8)}`;
      const cluster = needs.includes("cluster") ? starting.use(await startCluster(start)) : undefined;
      // A full or restarted server is nobody else's.
      const limited = storage === undefined ? undefined : starting.use(await limitedServer(start, storage));
      const nats =
        limited?.nats ?? (needs.includes("server") ? starting.use(await start(SAFE)) : await shared());
      const host = needs.includes("firestore") ? (await firestore())?.host : undefined;
      const store = host
        ? { PAWL_STORE: "firestore-rest", GOOGLE_CLOUD_PROJECT: namespace, FIRESTORE_EMULATOR_HOST: host }
        : { PAWL_STORE: "nats-kv" };
      const alone = await cluster?.leader();
      const others = cluster?.nodes.filter((node) => node !== alone).map(({ url }) => url);
      const where = { NATS_URL: others?.join(",") ?? nats.url, PAWL_NAMESPACE: namespace, ...store };
      const own = starting.move();
      return {
        env: { ...SETTINGS, ...where, ...(cluster && CLUSTER), ...env },
        nats,
        ...(cluster && alone && { cluster, alone }),
        ...(limited && { makeRoom: limited.makeRoom }),
        [Symbol.asyncDispose]: () => own.disposeAsync(),
      };
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  };
}

/** Nobody is told of what a drill breaks, no function is woken for it, and its runners are processes without an end. */
const NOT_FOR_DRILLS = /^PAWL_(WEBHOOK_|WAKE_URL$|TIME_LIMIT$|DRILL_)/;

/** Of all that are not secret, and say how Pawl behaves: as they hold. */
function shownSettings(given: Readonly<Record<string, string>>): Record<string, string> {
  const settings = settingsFrom(given);
  const rows: [string, Variable][] = Object.entries(protocolVariables);
  return Object.fromEntries(
    rows.map(([name, { sets, read, default: text = "" }]) => {
      const value = settings[sets as keyof Settings];
      const shown = typeof value === "number" && read === parseDuration ? showDuration(value) : String(value);
      return [name, typeof value === "object" ? (given[name] ?? text) : shown];
    }),
  );
}

/** Somebody's own servers and settings, in a namespace that is the drills' alone. */
export function targetServers(namespace: string, env: NodeJS.ProcessEnv): Servers {
  const { settings, nats } = configFrom(env);
  if (namespace === settings.namespace)
    throw new PawlError(
      "usage",
      `--target ${namespace} is the namespace that these settings run in (PAWL_NAMESPACE). Drills kill runners, take messages and plant faults: give them a namespace of their own, such as ${namespace.slice(0, 24)}-drills`,
    );
  const given = Object.fromEntries(
    Object.keys(variables)
      .filter((name) => env[name] !== undefined && !NOT_FOR_DRILLS.test(name))
      .map((name) => [name, env[name] as string]),
  );
  const place = { env: { ...given, PAWL_NAMESPACE: namespace }, [Symbol.asyncDispose]: async () => {} };
  return {
    name: `${nats.url}, namespace ${namespace}`,
    settings: shownSettings(given),
    isOurs: false,
    missing: async ({ needs }) =>
      needs.length > 0
        ? "it needs servers that can be killed, filled, cut off or listened to, or settings of its own: run it without --target"
        : undefined,
    open: async () => place,
    [Symbol.asyncDispose]: async () => {},
  };
}
