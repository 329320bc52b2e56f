/**
 * The first task of a function that has just been started, in workerd and in Google's framework, beside the least that
 * it could cost: connect, two writes, an ack. Times vary from machine to machine; ratios in one run say something.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { configFrom } from "../functions/wiring/config.ts";
import { wire } from "../functions/wiring/wire.node.ts";
import { buildFunction } from "../infra/build/build.ts";
import { ROOT } from "../infra/build/targets.ts";
import { startEmulator } from "../infra/local/emulator.ts";
import { startGcpFunction } from "../infra/local/functions-framework.ts";
import { startNats } from "../infra/local/nats-server.ts";
import { startWorkerd } from "../infra/local/workerd.ts";
import { queueOf } from "../shared/dispatch/dispatch.ts";
import { submit } from "../shared/dispatch/submit.ts";
import { apply } from "../shared/task/transitions.ts";

const ROUNDS = 5;
const SECRET = "a-secret-of-the-bench";
mkdirSync(join(ROOT, "dist"), { recursive: true });
const out = mkdtempSync(join(ROOT, "dist", "bench-"));
await using nats = await startNats();
await using emulator = await startEmulator();
const store = emulator
  ? { PAWL_STORE: "firestore", GOOGLE_CLOUD_PROJECT: "pawl-bench", FIRESTORE_EMULATOR_HOST: emulator.host }
  : { PAWL_STORE: "nats-kv" };
const env = { NATS_URL: nats.url, PAWL_RUN_SECRET: SECRET, ...store };
const agents = join(ROOT, "agents");

await using deps = await wire(configFrom(env), () => {});
const queue = queueOf(deps, { agent: "echo", lane: 0 });
await deps.bus.ensure(queue);
const enqueue = () => submit(deps, { agent: "echo", lanes: 1, input: { text: "hello" } });

/** What nobody can do without: a connection, a message, two guarded writes, an ack. By REST, as from cold it is faster. */
async function bare(): Promise<void> {
  const rest = emulator ? { PAWL_STORE: "firestore-rest" } : {};
  await using own = await wire(configFrom({ ...env, ...rest }), () => {});
  const delivery = await own.bus.pull(queue, 5_000).delivery;
  if (!delivery) throw new Error("nothing to pull");
  const id = delivery.subject.split(".").at(-1) as string;
  const mark = () => ({ now: Date.now(), stamp: crypto.randomUUID(), by: "bench" });
  const seen = await own.store.get(id);
  if (!seen) throw new Error(`no ${id}`);
  const holder = { queue: delivery.queue, seq: delivery.seq, token: "t", runner: "b", via: "s", lease: 1 };
  const claimed = apply(seen.task, { type: "claim", ...holder }, mark());
  const first = await own.store.replace(claimed, seen.revision);
  if (first.kind !== "written") throw new Error("refused");
  await own.store.replace(
    apply(claimed, { type: "complete", result: 1, expiresAt: Date.now() + 86_400_000 }, mark()),
    first.revision,
  );
  await delivery.ack();
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

async function run(url: string): Promise<void> {
  const answer = await fetch(`${url}/run`, {
    method: "POST",
    headers: { authorization: `Bearer ${SECRET}` },
  });
  const text = await answer.text();
  if (!text.includes('"completed":1')) throw new Error(text);
}

const median = (list: number[]) => list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)] as number;
const times = new Map<string, number[]>();
const note = (what: string, ms: number) => times.set(what, [...(times.get(what) ?? []), ms]);

try {
  const worker = await buildFunction("echo", "cloudflare", agents, out);
  const google = await buildFunction("echo", "gcp", agents, out);
  for (let round = 0; round < ROUNDS; round++) {
    await enqueue();
    note("bare: connect, two writes, ack", await timed(bare));
    {
      await using workerd = await startWorkerd([worker], { vars: { ...env, NATS_URL: nats.wsUrl } });
      const url = workerd.urls.echo as string;
      await enqueue();
      note("workerd: first task", await timed(() => run(url)));
      await enqueue();
      note("workerd: second task", await timed(() => run(url)));
    }
    {
      await using local = await startGcpFunction(google.folder, env);
      await enqueue();
      note("Node function: first task", await timed(() => run(local.url)));
      await enqueue();
      note("Node function: second task", await timed(() => run(local.url)));
    }
  }
} finally {
  rmSync(out, { recursive: true });
}

const base = median(times.get("bare: connect, two writes, ack") as number[]);
console.log(`median of ${ROUNDS}, on ${deps.store.name}`);
for (const [what, list] of times) {
  const ms = median(list);
  console.log(`${what.padEnd(34)} ${ms.toFixed(0).padStart(6)} ms  ${(ms / base).toFixed(1).padStart(5)} ×`);
}
