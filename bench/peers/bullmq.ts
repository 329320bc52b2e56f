import { freePort, onFreePorts } from "../../infra/local/ports.ts";
import { startServer, untilReady } from "../../infra/local/process.ts";
import { rate, timed } from "../rounds.ts";
import type { Peer } from "../systems.ts";
import { load } from "./peers.ts";
import { dataFolder, findProgram } from "./server.ts";

interface Connection {
  readonly host: string;
  readonly port: number;
  readonly maxRetriesPerRequest: null;
}
interface Worker {
  on(event: "completed" | "error", heard: () => void): void;
  close(): Promise<void>;
}
interface Library {
  readonly Queue: new (
    name: string,
    options: { connection: Connection },
  ) => {
    addBulk(jobs: readonly { name: string; data: object }[]): Promise<unknown>;
    close(): Promise<void>;
  };
  readonly Worker: new (
    name: string,
    work: () => Promise<object>,
    options: { connection: Connection; concurrency: number },
  ) => Worker;
}

/** Debian's Redis with an append-only file that is synced every second. */
async function startRedis(): Promise<AsyncDisposable & { readonly port: number }> {
  const program = await findProgram("redis-server", "redis-server");
  const folder = await dataFolder("redis");
  const { server, port } = await onFreePorts(async () => {
    const port = await freePort();
    const where = ["--bind", "127.0.0.1", "--port", String(port), "--dir", folder];
    const server = await startServer(program, [
      ...where,
      ...["--appendonly", "yes", "--appendfsync", "everysec", "--save", ""],
    ]);
    const isReady = async () => server.output().includes("eady to accept connections");
    await untilReady(server, "Redis", isReady, 15_000);
    return { server, port };
  });
  return { port, [Symbol.asyncDispose]: () => server.stop() };
}

export async function openBullMq(): Promise<Peer> {
  await using stack = new AsyncDisposableStack();
  const redis = stack.use(await startRedis());
  const { Queue, Worker } = await load<Library>("bullmq");
  const connection = { host: "127.0.0.1", port: redis.port, maxRetriesPerRequest: null };
  const owned = stack.move();
  return {
    rate: async ({ tasks, lanes }) => {
      const name = `noop-${crypto.randomUUID()}`;
      const queue = new Queue(name, { connection });
      for (let i = 0; i < tasks; i += 1_000) {
        const some = Array.from({ length: Math.min(1_000, tasks - i) }, () => ({
          name: "noop",
          data: { text: "hello" },
        }));
        await queue.addBulk(some);
      }
      const all = Promise.withResolvers<void>();
      let left = tasks;
      let worker: Worker | undefined;
      const ms = await timed(() => {
        worker = new Worker(name, async () => ({ ok: true }), { connection, concurrency: lanes });
        worker.on("error", () => {});
        worker.on("completed", () => {
          if (--left === 0) all.resolve();
        });
        return all.promise;
      });
      await worker?.close();
      await queue.close();
      return rate(tasks, ms);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
