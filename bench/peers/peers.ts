import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { NotHere, type Stage } from "../bench.ts";
import { unlessStopped } from "../rounds.ts";
import type { Peer } from "../systems.ts";
import { findProgram, versionOf } from "./server.ts";

interface Entry {
  /** As a share of Pawl's tasks, so that a round of each takes about as long. */
  readonly share: number;
  /** Its packages, the first of which tells its version. */
  readonly packages: readonly string[];
  open(): Promise<Peer>;
}

const NAMES = ["graphile-worker", "DBOS", "Restate", "BullMQ", "pg-boss"] as const;
export type PeerName = (typeof NAMES)[number];

/** What people would pick instead. Each is loaded only when it is opened: its packages are its own. */
export const peers: Readonly<Record<PeerName, Entry>> = {
  "graphile-worker": {
    share: 1,
    packages: ["graphile-worker", "pg"],
    open: async () => (await import("./graphile-worker.ts")).openGraphileWorker(),
  },
  DBOS: {
    share: 0.3,
    packages: ["@dbos-inc/dbos-sdk"],
    open: async () => (await import("./dbos.ts")).openDbos(),
  },
  Restate: {
    share: 0.3,
    packages: ["@restatedev/restate-server", "@restatedev/restate-sdk"],
    open: async () => (await import("./restate.ts")).openRestate(),
  },
  BullMQ: {
    share: 2,
    packages: ["bullmq"],
    open: async () => (await import("./bullmq.ts")).openBullMq(),
  },
  "pg-boss": {
    share: 0.4,
    packages: ["pg-boss"],
    open: async () => (await import("./pg-boss.ts")).openPgBoss(),
  },
};

export interface OpenPeer {
  readonly name: PeerName;
  readonly peer: Peer;
  readonly share: number;
}

const FOLDER = fileURLToPath(new URL(".", import.meta.url));

/** None where nobody asked for them. */
export async function openPeers(
  { hasPeers, tell, stop }: Pick<Stage, "hasPeers" | "tell" | "stop">,
  names: readonly PeerName[] = NAMES,
): Promise<AsyncDisposable & { readonly open: readonly OpenPeer[] }> {
  const open: OpenPeer[] = [];
  await using stack = new AsyncDisposableStack();
  if (hasPeers) {
    for (const name of names) {
      tell(`${name} starts`);
      const peer = stack.use(await unlessStopped(stop, peers[name].open()));
      open.push({ name, peer, share: peers[name].share });
    }
  }
  const owned = stack.move();
  return { open, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Their packages, by the lock file, without running any of their scripts. */
export async function installPeers(tell: Stage["tell"]): Promise<void> {
  if (NAMES.every((name) => peers[name].packages.every((one) => existsSync(manifestOf(one))))) return;
  tell("installing the peers' packages");
  const npm = spawn("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], {
    cwd: FOLDER,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  npm.stderr.on("data", (chunk: Buffer) => {
    said += chunk.toString();
  });
  const code = await new Promise((resolve) => npm.on("close", resolve).on("error", resolve));
  if (code !== 0) throw new NotHere(`npm ci in bench/peers ended with ${code}: ${said.slice(-2_000)}`);
}

const manifestOf = (name: string) => `${FOLDER}node_modules/${name}/package.json`;

/** Those that are installed, and the servers that they keep their tasks in, as a result names them. */
export async function peerVersions(): Promise<Record<string, string>> {
  const packaged = (name: string) =>
    (JSON.parse(readFileSync(manifestOf(name), "utf8")) as { version: string }).version;
  const [postgres, redis] = [
    findProgram("postgres", "postgresql"),
    findProgram("redis-server", "redis-server"),
  ];
  return {
    ...Object.fromEntries(NAMES.map((name) => [name, packaged(peers[name].packages[0] as string)])),
    PostgreSQL: await versionOf(await postgres),
    Redis: await versionOf(await redis),
  };
}

/** A package of the peers', as far as it is used here. Its own types are there only once it is installed. */
export async function load<T>(name: string): Promise<T> {
  return (await import(name)) as T;
}
