import { randomUUID } from "node:crypto";
import type { NatsConnection } from "@nats-io/nats-core";
import { inject } from "vitest";
import type { Config, StoreKind } from "../../../functions/wiring/config.ts";
import { STORES } from "../../../functions/wiring/config.ts";
import { type Wired, wire } from "../../../functions/wiring/wire.node.ts";
import { type LocalNats, type LocalNatsOptions, startNats } from "../../../infra/local/nats-server.ts";
import type { Log, LogFields, LogLevel } from "../../../shared/ports/log.ts";
import type { TaskStore } from "../../../shared/ports/store.ts";
import { sealed } from "../../../shared/seal/sealed.ts";
import { sealerOf } from "../../../shared/seal/sealer.ts";
import { makeSettings, type Settings } from "../../../shared/settings/settings.ts";
import { memoryStore } from "../../../shared/testing/memory-store.ts";
import { CalmWorld } from "./simulated.ts";

export const emulatorHost = inject("emulatorHost");
export const hasEmulator = emulatorHost !== "";

/** All stores, each with whether it can run here: `describe.skipIf(!store.here)`. */
export const stores = STORES.map((kind) => ({ kind, here: kind === "nats-kv" || hasEmulator }));

/**
 * One for each server. Two clients of Firestore differ in nothing that a journey sees: the contract suites run on both, and so
 * do a task's path, the API, the functions, and those that kill and freeze.
 */
export const oneOfEach = stores.filter(({ kind }) => kind !== "firestore-rest");

/** The same store as `nats-kv`, with a bucket for each agent. */
const SEPARATE = "nats-kv, separate";

/** Those that need no server: the test kit's, and the simulator's, of one copy and of several. */
const SERVERLESS = ["memory", "simulated", "simulated, replicated"] as const;
type Serverless = (typeof SERVERLESS)[number];

/** All that pass the store's contract. */
export const everyStore = [
  ...stores,
  ...([SEPARATE, ...SERVERLESS] as const).map((kind) => ({ kind, here: true })),
];

export function isOnServer(kind: StoreKind | Serverless | typeof SEPARATE): kind is StoreKind {
  return STORES.includes(kind as StoreKind);
}

/** A store that is empty, sealed as all are. */
export interface EmptyStore extends AsyncDisposable {
  readonly store: TaskStore;
  readonly settings: Settings;
  /** None where there is no server. */
  readonly nc?: NatsConnection;
}

export async function emptyStore(
  nats: LocalNats,
  kind: StoreKind | Serverless | typeof SEPARATE,
): Promise<EmptyStore> {
  if (kind === SEPARATE)
    return wired(world(nats, "nats-kv", { requestTimeout: 15_000, isolation: "documents" }).config);
  // Nobody holds a lease: a busy emulator may take its time.
  if (isOnServer(kind)) return wired(world(nats, kind, { requestTimeout: 15_000 }).config);
  const isReplicated = kind === "simulated, replicated";
  const plain = kind === "memory" ? memoryStore() : new CalmWorld().store(isReplicated);
  const store = sealed(plain, sealerOf(), () => {});
  return { store, settings: makeSettings({}), [Symbol.asyncDispose]: () => store.close() };
}

export function testNats(options: LocalNatsOptions = {}): Promise<LocalNats> {
  return startNats({ binary: inject("natsServer"), ...options });
}

export interface Logged {
  readonly level: LogLevel;
  readonly event: string;
  readonly fields: LogFields;
}

export interface TestWorld {
  readonly nats: LocalNats;
  readonly config: Config;
  /** The same, for a process of its own. */
  readonly env: Record<string, string>;
}

/** A namespace and a project of its own, on the given server. */
export function world(
  nats: LocalNats,
  store: StoreKind,
  given: Partial<Settings> = {},
  host = emulatorHost,
): TestWorld {
  const namespace = `t${randomUUID().slice(0, 8)}`;
  const settings = makeSettings({ namespace, ...given });
  const project = `p-${namespace}`;
  return worldOf(nats, {
    settings,
    nats: { url: nats.url },
    store,
    ...(store !== "nats-kv" && { project, emulatorHost: host }),
  });
}

export function worldOf(nats: LocalNats, config: Config): TestWorld {
  const { settings, store, project = "", emulatorHost: host = "" } = config;
  const env = {
    NATS_URL: nats.url,
    PAWL_STORE: store,
    PAWL_NAMESPACE: settings.namespace,
    PAWL_ACK_WAIT: `${settings.ackWait}ms`,
    PAWL_DUPLICATE_WINDOW: `${settings.duplicateWindow}ms`,
    PAWL_RETENTION: `${settings.retention}ms`,
    PAWL_STOP_GRACE: `${settings.stopGrace}ms`,
    PAWL_REQUEST_TIMEOUT: `${settings.requestTimeout}ms`,
    PAWL_CRASH_LIMIT: String(settings.crashLimit),
    PAWL_REPLICAS: String(settings.replicas),
    PAWL_ISOLATION: settings.isolation,
    ...(store !== "nats-kv" && { GOOGLE_CLOUD_PROJECT: project, FIRESTORE_EMULATOR_HOST: host }),
  };
  return { nats, config, env };
}

export async function wired(config: Config): Promise<Wired & { logged: Logged[] }> {
  const logged: Logged[] = [];
  const log: Log = (level, event, fields = {}) => void logged.push({ level, event, fields });
  return Object.assign(await wire(config, log), { logged });
}
