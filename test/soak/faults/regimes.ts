import { setTimeout as sleep } from "node:timers/promises";
import { type ClusterNode, startCluster } from "../../../infra/drills/faults/cluster.ts";
import { cuttingProxy } from "../../../infra/drills/faults/proxy.ts";
import { HOW_TO_GET, startEmulator } from "../../../infra/local/emulator.ts";
import { startNats } from "../../../infra/local/nats-server.ts";
import { PawlError } from "../../../shared/errors/errors.ts";
import type { Inject } from "./disturb.ts";
import type { Channel } from "./plan.ts";

type Env = Record<string, string>;

/** Real servers, and what is done to them. */
export interface Servers extends AsyncDisposable {
  /** By which a process reaches them, through whatever may be cut. Several ways are taken in turns. */
  readonly ways: readonly Env[];
  /** By which whoever looks on reaches them. */
  readonly direct: Env;
  readonly faults: Partial<Record<Channel, Inject>>;
}

export const regimes = {
  kv: { meaning: "one nats-server, documents in NATS KV", start: kv },
  cluster: {
    meaning: "three nats-servers, three copies of everything, documents in NATS KV",
    start: cluster,
  },
  firestore: {
    meaning: "one nats-server, documents in the Firestore emulator behind a proxy",
    start: firestore,
  },
} as const satisfies Record<string, { meaning: string; start: () => Promise<Servers> }>;

export type RegimeName = keyof typeof regimes;

/** Also on a disk that is slow: whatever was answered is there after a kill. */
const SYNCED = { sync: "always" } as const;

async function broker() {
  const nats = await startNats(SYNCED);
  const kill: Inject = async ({ lasts }, begun) => {
    begun();
    await nats.halt("SIGKILL");
    await sleep(lasts);
    await nats.restart();
  };
  return { nats, kill };
}

async function kv(): Promise<Servers> {
  const { nats, kill } = await broker();
  const direct = { NATS_URL: nats.url, PAWL_STORE: "nats-kv" };
  return {
    ways: [direct],
    direct,
    faults: { broker: kill },
    [Symbol.asyncDispose]: () => nats.stop(),
  };
}

async function cluster(): Promise<Servers> {
  const started = await startCluster((options) => startNats({ ...options, ...SYNCED }));
  const { nodes } = started;
  let turn = 0;
  /** One after the other, so that each is hit. */
  const next = () => nodes[turn++ % nodes.length] as ClusterNode;
  const hit: Inject = async ({ kind, lasts }, begun) => {
    const node = next();
    begun({ whom: node.name });
    if (kind === "node killed") {
      await node.halt("SIGKILL");
      await sleep(lasts);
      return node.restart();
    }
    started.isolate(node, lasts % 2 ? "silent" : "reset");
    await sleep(lasts);
    await started.heal([]);
  };
  const ways = nodes.map(({ url }) => ({ NATS_URL: url, PAWL_STORE: "nats-kv", PAWL_REPLICAS: "3" }));
  return {
    ways,
    direct: ways[0] as Env,
    faults: { cluster: hit },
    [Symbol.asyncDispose]: () => started[Symbol.asyncDispose](),
  };
}

async function firestore(): Promise<Servers> {
  await using starting = new AsyncDisposableStack();
  const { nats, kill } = await broker();
  starting.use(nats);
  const { FIRESTORE_EMULATOR_HOST: _, ...env } = process.env;
  const emulator = await startEmulator(env);
  if (!emulator) throw new PawlError("setting_invalid", `There is no Firestore emulator here: ${HOW_TO_GET}`);
  starting.use(emulator);
  const proxy = starting.use(await cuttingProxy(emulator.host));
  const hit: Inject = async ({ kind, lasts }, begun) => {
    const fault =
      kind === "store cut off" ? proxy.cut : kind === "store delayed" ? proxy.stall : proxy.swallowReplies;
    fault(true);
    begun();
    await sleep(lasts);
    fault(false);
  };
  const own = { NATS_URL: nats.url, GOOGLE_CLOUD_PROJECT: "pawl-soak" };
  const way = (store: string, host: string) => ({
    ...own,
    PAWL_STORE: store,
    FIRESTORE_EMULATOR_HOST: host,
  });
  const started = starting.move();
  return {
    ways: [way("firestore", proxy.host), way("firestore-rest", proxy.host)],
    direct: way("firestore-rest", emulator.host),
    faults: { broker: kill, store: hit },
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}
