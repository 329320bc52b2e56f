import { execFile, execFileSync } from "node:child_process";
import { chown, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { freePort, onFreePorts } from "../../infra/local/ports.ts";
import { startServer, untilReady } from "../../infra/local/process.ts";
import { load } from "./peers.ts";
import { dataFolder, findProgram } from "./server.ts";

const run = promisify(execFile);

/** It refuses to run as root. */
const USER = "postgres";

export interface Postgres extends AsyncDisposable {
  readonly url: string;
}

/** Debian's PostgreSQL with its own settings, on a data folder of its own. */
export async function startPostgres(): Promise<Postgres> {
  const program = await findProgram("postgres", "postgresql");
  const folder = await dataFolder("postgres");
  const isRoot = process.getuid?.() === 0;
  const idOf = (flag: string) => Number(execFileSync("id", [flag, USER]).toString());
  const ids = isRoot ? { uid: idOf("-u"), gid: idOf("-g") } : {};
  if (isRoot) await chown(folder, idOf("-u"), idOf("-g"));
  const data = join(folder, "data");
  const auth = ["-A", "trust", "-U", USER];
  await run(join(dirname(program), "initdb"), ["-D", data, ...auth], { cwd: folder, ...ids });
  const started = await onFreePorts(async () => {
    const port = await freePort();
    const own = ["-D", data, "-h", "127.0.0.1", "-p", String(port), "-k", folder];
    // setpriv becomes the server: signals to it are signals to the server.
    const asUser = isRoot ? ["setpriv", `--reuid=${USER}`, `--regid=${USER}`, "--clear-groups"] : [];
    const [command = program, ...args] = [...asUser, program, ...own];
    const server = await startServer(command, args);
    const isReady = async () => server.output().includes("ready to accept connections");
    await untilReady(server, "PostgreSQL", isReady, 30_000);
    return { server, port };
  });
  return {
    url: `postgresql://${USER}@127.0.0.1:${started.port}/postgres`,
    [Symbol.asyncDispose]: async () => {
      // SIGTERM waits for its clients, SIGINT does not.
      process.kill(started.server.pid, "SIGINT");
      await started.server.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

interface Client {
  on(event: "error", heard: () => void): void;
}
export interface Pool extends Client {
  on(event: "error", heard: () => void): void;
  on(event: "connect", heard: (client: Client) => void): void;
  query(text: string): Promise<unknown>;
  end(): Promise<void>;
}

/** More connections than any bench has tasks at once. */
export async function pgPool(connectionString: string, max = 20): Promise<Pool> {
  const { default: pg } = await load<{
    default: { Pool: new (options: { connectionString: string; max: number }) => Pool };
  }>("pg");
  const pool = new pg.Pool({ connectionString, max });
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}
