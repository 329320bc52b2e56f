import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findNatsServer, type Tell } from "./find-nats.ts";
import { freePort, type ServerProcess, startServer, untilReady } from "./process.ts";

export interface LocalNats extends AsyncDisposable {
  readonly url: string;
  readonly wsUrl: string;
  readonly pid: number;
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
  /** Where its streams are kept. A temporary folder, removed on stop, when left out. */
  readonly folder?: string;
  /** More lines for its configuration, such as users. */
  readonly config?: string;
  readonly tell?: Tell;
}

/** A nats-server of our own, with JetStream and a WebSocket listener, on free ports of the loopback address. */
export async function startNats(options: LocalNatsOptions = {}): Promise<LocalNats> {
  const binary = options.binary ?? (await findNatsServer(process.env, options.tell));
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), "pawl-nats-")));
  const [port, wsPort] = [await freePort(), await freePort()];
  const config = join(folder, "nats.conf");
  const configure = (lines = "") =>
    writeFile(
      config,
      `listen: "127.0.0.1:${port}"
jetstream { store_dir: "${folder}", max_file_store: 20GB }
websocket { listen: "127.0.0.1:${wsPort}", no_tls: true }
${lines}
`,
    );
  await configure(options.config);
  const start = async (): Promise<ServerProcess> => {
    const server = await startServer(binary, ["-c", config]);
    await untilReady(server, "nats-server", () => accepts(port), 15_000);
    return server;
  };
  let server = await start();
  const halt = async (signal: "SIGTERM" | "SIGKILL" = "SIGTERM") => {
    process.kill(server.pid, signal);
    await server.exited;
  };
  const stop = async () => {
    await server.stop();
    if (!options.folder) await rm(folder, { recursive: true, force: true });
  };
  return {
    url: `nats://127.0.0.1:${port}`,
    wsUrl: `ws://127.0.0.1:${wsPort}`,
    get pid() {
      return server.pid;
    },
    restart: async () => {
      server = await start();
    },
    reload: async (lines) => {
      await configure(lines);
      process.kill(server.pid, "SIGHUP");
    },
    halt,
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

/** Ready when it greets with its INFO line. */
function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port, timeout: 1000 });
    const end = (ok: boolean) => {
      socket.destroy();
      resolve(ok);
    };
    socket.once("data", (chunk) => end(chunk.toString().startsWith("INFO")));
    socket.once("error", () => end(false));
    socket.once("timeout", () => end(false));
  });
}
