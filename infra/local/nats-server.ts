import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findNatsServer, type Tell } from "./find-nats.ts";
import { type ChoosePort, freePort, onFreePorts, onSamePorts } from "./ports.ts";
import { type ServerProcess, startServer, untilReady } from "./process.ts";

export interface LocalNats extends AsyncDisposable {
  readonly url: string;
  readonly wsUrl: string;
  /** Where it can be asked who is connected, and the like. */
  readonly monitorUrl: string;
  readonly pid: number;
  /** Of the process that runs now: with its exit code, when it ends. */
  readonly exited: Promise<number | null>;
  /** Starts it again on the same ports and folder, after it was stopped or killed. */
  restart(): Promise<void>;
  /** Gives it other lines for its configuration, without ending it. */
  reload(config: string): Promise<void>;
  /** Ends the process and keeps the folder. */
  halt(signal?: "SIGTERM" | "SIGKILL"): Promise<void>;
  stop(): Promise<void>;
}

export interface LocalNatsOptions {
  readonly binary?: string;
  /** Where its streams are kept, and nats.pid says whose they are. A temporary folder, removed on stop, when left out. */
  readonly folder?: string;
  /** More lines for its configuration, such as users. */
  readonly config?: string;
  /** Every write is on the disk before it is answered; two minutes later by default. */
  readonly sync?: "always";
  readonly tell?: Tell;
  readonly choosePort?: ChoosePort;
}

/** A nats-server of our own, with JetStream and a WebSocket listener, on free ports of the loopback address. */
export async function startNats(options: LocalNatsOptions = {}): Promise<LocalNats> {
  const binary = options.binary ?? (await findNatsServer(process.env, options.tell));
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), "pawl-nats-")));
  const tidy = async () => {
    if (!options.folder) await rm(folder, { recursive: true, force: true });
  };
  const started = await onFreePorts(async () => {
    const chosen = await choosePorts(options.choosePort);
    await configure(folder, chosen, options);
    return { server: await serverIn(binary, folder, options.config), ports: chosen };
  }).catch(async (error: unknown) => {
    await tidy();
    throw error;
  });
  const { ports } = started;
  let { server } = started;
  let lines = options.config;
  const halt = async (signal: "SIGTERM" | "SIGKILL" = "SIGTERM") => {
    process.kill(server.pid, signal);
    await server.exited;
  };
  const stop = async () => {
    await server.stop();
    await tidy();
  };
  return {
    url: `nats://127.0.0.1:${ports.client}`,
    wsUrl: `ws://127.0.0.1:${ports.ws}`,
    monitorUrl: `http://127.0.0.1:${ports.monitor}`,
    get pid() {
      return server.pid;
    },
    get exited() {
      return server.exited;
    },
    restart: async () => {
      server = await onSamePorts(() => serverIn(binary, folder, lines), 30_000);
    },
    reload: async (changed) => {
      lines = changed;
      await configure(folder, ports, { ...options, config: lines });
      process.kill(server.pid, "SIGHUP");
    },
    halt,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

interface Ports {
  readonly client: number;
  readonly ws: number;
  readonly monitor: number;
}

async function choosePorts(choose: ChoosePort = freePort): Promise<Ports> {
  return { client: await choose(), ws: await choose(), monitor: await choose() };
}

function configure(
  folder: string,
  { client, ws, monitor }: Ports,
  { config = "", sync }: LocalNatsOptions,
): Promise<void> {
  // More than any disk has: each stream and bucket has its limit set aside, and there may be many.
  return writeFile(
    join(folder, "nats.conf"),
    `listen: "127.0.0.1:${client}"
http: "127.0.0.1:${monitor}"
pid_file: "${join(folder, "nats.pid")}"
jetstream { store_dir: "${folder}", max_file_store: 100TB${sync ? `, sync_interval: ${sync}` : ""} }
websocket { listen: "127.0.0.1:${ws}", no_tls: true }
${config}
`,
  );
}

/** Ready by its own word: who answers on its port may be somebody else. It listens for other servers last. */
async function serverIn(binary: string, folder: string, lines = ""): Promise<ServerProcess> {
  const server = await startServer(binary, ["-c", join(folder, "nats.conf")]);
  const last = /^cluster\b/m.test(lines) ? "Listening for route connections" : "Server is ready";
  await untilReady(server, "nats-server", async () => server.output().includes(last), 15_000);
  return server;
}
