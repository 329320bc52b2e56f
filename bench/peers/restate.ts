import { createServer } from "node:http2";
import { createRequire } from "node:module";
import { freePort, onFreePorts } from "../../infra/local/ports.ts";
import { startServer, untilReady } from "../../infra/local/process.ts";
import { NotHere } from "../bench.ts";
import { each, rate, timed } from "../rounds.ts";
import type { Peer } from "../systems.ts";
import { load } from "./peers.ts";
import { dataFolder } from "./server.ts";

interface Context {
  run(name: string, work: () => Promise<unknown>): Promise<unknown>;
}
type Handler = (context: Context, input: { steps: number }) => Promise<object>;
interface Library {
  object(definition: { name: string; handlers: Record<string, Handler> }): object;
  createEndpointHandler(options: { services: readonly object[]; logger: () => void }): () => void;
}

const OBJECT = "noop";

/** The package for this machine; that of its command only starts it. */
function binary(): string {
  const require = createRequire(import.meta.url);
  const arch = process.arch === "x64" ? "x64" : "arm64";
  try {
    return require.resolve(`@restatedev/restate-server-${process.platform}-${arch}/bin/restate-server`);
  } catch {
    throw new NotHere(`Restate has no server for ${process.platform} ${process.arch}`);
  }
}

interface Restate extends AsyncDisposable {
  readonly ingress: string;
  readonly admin: string;
}

async function startRestate(): Promise<Restate> {
  const folder = await dataFolder("restate");
  const started = await onFreePorts(async () => {
    const [ingress, admin, node] = [await freePort(), await freePort(), await freePort()];
    const env = {
      PATH: process.env.PATH,
      RESTATE_BASE_DIR: folder,
      RESTATE_NODE_NAME: "bench",
      RESTATE_LISTEN_MODE: "tcp",
      RESTATE_BIND_IP: "127.0.0.1",
      RESTATE_BIND_PORT: String(node),
      RESTATE_ADVERTISED_ADDRESS: `http://127.0.0.1:${node}`,
      RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
      RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
      RESTATE_DISABLE_TELEMETRY: "true",
      RESTATE_LOG_FILTER: "warn",
      DO_NOT_TRACK: "1",
    };
    const server = await startServer(binary(), ["--no-logo"], env);
    const answers = async () =>
      (await fetch(`http://127.0.0.1:${admin}/health`)).ok &&
      (await fetch(`http://127.0.0.1:${ingress}/restate/health`)).ok;
    await untilReady(server, "Restate", answers, 60_000);
    return { server, ingress, admin };
  });
  return {
    ingress: `http://127.0.0.1:${started.ingress}`,
    admin: `http://127.0.0.1:${started.admin}`,
    [Symbol.asyncDispose]: () => started.server.stop(),
  };
}

/**
 * As many objects as there are lanes: what is sent to one is done one at a time. The first task of each waits until all
 * are sent, so that they are queued, as with the others.
 */
export async function openRestate(): Promise<Peer> {
  await using stack = new AsyncDisposableStack();
  const { object, createEndpointHandler } = await load<Library>("@restatedev/restate-sdk");
  let sent = Promise.withResolvers<void>();
  let done = () => {};
  const noop: Handler = async (context, { steps }) => {
    await sent.promise;
    for (let i = 0; i < steps; i++) await context.run(`step-${i}`, async () => null);
    done();
    return { ok: true };
  };
  const service = object({ name: OBJECT, handlers: { noop } });
  const endpoint = createServer(createEndpointHandler({ services: [service], logger: () => {} }));
  const port = await onFreePorts(async () => {
    const free = await freePort();
    await new Promise<void>((resolve, reject) =>
      endpoint.once("error", reject).listen(free, "127.0.0.1", resolve),
    );
    return free;
  });
  stack.defer(() => void endpoint.close());
  const restate = stack.use(await startRestate());
  const post = async (url: string, body: object) => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`Restate answered ${answer.status}: ${await answer.text()}`);
    await answer.arrayBuffer();
  };
  await post(`${restate.admin}/deployments`, { uri: `http://127.0.0.1:${port}` });
  const owned = stack.move();
  return {
    rate: async ({ tasks, lanes, steps }) => {
      sent = Promise.withResolvers();
      const all = Promise.withResolvers<void>();
      let left = tasks;
      done = () => {
        if (--left === 0) all.resolve();
      };
      const run = crypto.randomUUID().slice(0, 8);
      await each(tasks, 16, (index) =>
        post(`${restate.ingress}/${OBJECT}/${run}-${index % lanes}/noop/send`, { steps }),
      );
      const ms = await timed(() => {
        sent.resolve();
        return all.promise;
      });
      return rate(tasks, ms);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
