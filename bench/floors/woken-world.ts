import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { AckPolicy, jetstream, jetstreamManager, RetentionPolicy } from "@nats-io/jetstream";
import { build } from "esbuild";
import { configFrom } from "../../functions/wiring/config.ts";
import { type Wired, wire } from "../../functions/wiring/wire.node.ts";
import { buildFunction } from "../../infra/build/build.ts";
import { HOW_TO_GET, startEmulator } from "../../infra/local/emulator.ts";
import { startGcpFunction } from "../../infra/local/functions-framework.ts";
import { startNats } from "../../infra/local/nats-server.ts";
import { startWorkerd } from "../../infra/local/workerd.ts";
import { ROOT } from "../../infra/project.ts";
import { firestoreRest } from "../../shared/adapters/firestore/rest.ts";
import { ensureQueue, queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { NotHere } from "../bench.ts";
import { documentsOf } from "../documents.ts";

const SECRET = "a-secret-of-the-bench";
const STREAM = "BARE";

/** A function that runs: its address, as Pawl's and as the bare one. */
export interface Function extends AsyncDisposable {
  readonly url: string;
}
export type Start = () => Promise<Function>;

export interface World extends AsyncDisposable {
  /** What a caller of a function has to know. */
  readonly secret: string;
  /** By runtime and side. */
  readonly starts: Readonly<Record<"workerd" | "Node", { readonly bare: Start; readonly pawl: Start }>>;
  enqueue(side: "bare" | "pawl"): Promise<void>;
}

/** All servers, and bundles of both functions for both runtimes. */
export async function openWorld(): Promise<World> {
  await using stack = new AsyncDisposableStack();
  const emulator = stack.use(await startEmulator());
  if (!emulator) throw new NotHere(`There is no Firestore emulator: ${HOW_TO_GET}`);
  const nats = stack.use(await startNats());
  const project = { GOOGLE_CLOUD_PROJECT: "bench", FIRESTORE_EMULATOR_HOST: emulator.host };
  const own = { PAWL_RUN_SECRET: SECRET, PAWL_STORE: "firestore", ...project };
  const bare = { BARE_STREAM: STREAM, ...project };
  const deps = stack.use(await wire(configFrom({ NATS_URL: nats.url, ...own }), () => {}));
  await ensureQueue(deps, queueOf(deps, { agent: "echo", lane: 0 }), "correct");
  // Inside the project, so that packages are found.
  mkdirSync(join(ROOT, "dist"), { recursive: true });
  const out = mkdtempSync(join(ROOT, "dist", "bench-"));
  stack.defer(() => rmSync(out, { recursive: true, force: true }));
  const worker = await buildFunction("echo", "cloudflare", join(ROOT, "agents"), out);
  const google = await buildFunction("echo", "gcp", join(ROOT, "agents"), out);
  const bareWorker = await bundled("worker", out);
  const bareGoogle = await bundled("gcp", out);
  const inWorkerd = (name: string, file: string, vars: Record<string, string>) => async () => {
    const workerd = await startWorkerd([{ name, file }], { vars: { ...vars, NATS_URL: nats.wsUrl } });
    return { url: workerd.urls[name] as string, [Symbol.asyncDispose]: () => workerd[Symbol.asyncDispose]() };
  };
  const inNode = (folder: string, vars: Record<string, string>) => () =>
    startGcpFunction(folder, { ...vars, NATS_URL: nats.url });
  const addBare = await bareQueue(deps, emulator.host);
  const owned = stack.move();
  return {
    secret: SECRET,
    starts: {
      workerd: {
        bare: inWorkerd("bare", bareWorker.file, bare),
        pawl: inWorkerd(worker.name, worker.file, own),
      },
      Node: { bare: inNode(bareGoogle.folder, bare), pawl: inNode(google.folder, own) },
    },
    enqueue: async (side) => {
      if (side === "bare") await addBare();
      else await submit(deps, { agent: "echo", lanes: 1, input: { text: "hello" } });
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

async function bundled(platform: "worker" | "gcp", out: string): Promise<{ file: string; folder: string }> {
  const folder = join(out, `bare-${platform}`);
  const file = join(folder, "index.js");
  const require =
    "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);";
  await build({
    entryPoints: [join(ROOT, "bench/floors", `woken.${platform}.ts`)],
    outfile: file,
    bundle: true,
    minify: true,
    format: "esm",
    logLevel: "silent",
    ...(platform === "worker"
      ? { platform: "browser", conditions: ["workerd", "worker", "browser"], external: ["node:*"] }
      : { platform: "node", external: ["@google-cloud/functions-framework"], banner: { js: require } }),
  });
  return { file, folder };
}

/** A stream, a consumer, and documents in a namespace that nothing of Pawl's looks at. */
async function bareQueue({ nc }: Wired, host: string): Promise<() => Promise<void>> {
  const jsm = await jetstreamManager(nc);
  const store = { projectId: "bench", namespace: "bare", requestTimeout: 5_000 };
  const documents = firestoreRest({ ...store, origin: `http://${host}`, token: async () => "owner" });
  await jsm.streams.add({ name: STREAM, subjects: ["bare.*"], retention: RetentionPolicy.Workqueue });
  const consumer = { durable_name: "runner", ack_policy: AckPolicy.Explicit, max_ack_pending: 1 };
  await jsm.consumers.add(STREAM, consumer);
  return async () => {
    const { created } = documentsOf(crypto.randomUUID());
    const written = await documents.create(created);
    if (written.kind !== "written") throw new Error("A new document was refused");
    const { revision } = written;
    await jetstream(nc).publish(`bare.${created.id}`, JSON.stringify({ id: created.id, revision }));
  };
}
