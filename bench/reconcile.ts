/**
 * What a reconciliation costs: its time, also against only reading all documents, and its memory. Sequences with their
 * documents are loaded straight into the store; then a process of its own makes three reports: the first, one with
 * nothing new, one after 1,000 changes. None of them may have a finding. Ends with 1 where one has, or a figure is wrong.
 *
 *   npm run bench:reconcile -- 100000 --journals 0.1      10 % of the tasks have a journal
 *   npm run bench:reconcile -- 1000000 --live 1           all of the tasks wait, and are carried over
 *   npm run bench:reconcile -- 2000 --store firestore     in the emulator
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { configFrom } from "../functions/wiring/config.ts";
import { type Wired, wire } from "../functions/wiring/wire.node.ts";
import { HOW_TO_GET, startEmulator } from "../infra/local/emulator.ts";
import { startNats } from "../infra/local/nats-server.ts";
import { total } from "../shared/reconcile/figures/tally.ts";
import { writers } from "../shared/reconcile/page/writers.ts";
import { reconcile } from "../shared/reconcile/reconcile.ts";
import type { Reconciled } from "../shared/reconcile/write.ts";
import { type Load, loadTasks } from "./load.ts";

/** As on a small function: left alone, Node lets garbage pile up before it looks. */
const HEAP = "--max-old-space-size=128";
const QUEUE = { namespace: "bench", agent: "echo", lane: 0, generation: 1 };
const CHANGES = 1_000;
/** What ended less than a minute ago, the next report looks at once more. */
const MOMENT = 65_000;

/** By the clock, and by what this process used of the processors: the first is the other processes' time too. */
interface Took {
  readonly ms: number;
  readonly cpu: number;
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;
const said = ({ ms, cpu }: Took) => `${seconds(ms)} (${seconds(cpu)} CPU)`;
const say = (line: string) => console.log(`  ${line}`);
const mb = (bytes: number) => Math.round(bytes / 1024 / 1024);

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    journals: { type: "string", default: "0" },
    live: { type: "string", default: "0" },
    store: { type: "string", default: "nats-kv" },
    child: { type: "boolean", default: false },
  },
});
const shares = { journals: Number(values.journals), live: Number(values.live) };
const sizes = positionals.map(Number);
if (values.child) await child({ ...shares, count: sizes[0] as number });
else for (const count of sizes.length > 0 ? sizes : [10_000, 100_000, 1_000_000]) await parent(count);

async function parent(count: number): Promise<void> {
  await using nats = await startNats();
  await using emulator = values.store === "nats-kv" ? undefined : await startEmulator();
  if (values.store !== "nats-kv" && !emulator) throw new Error(HOW_TO_GET);
  const env = {
    NATS_URL: nats.url,
    PAWL_STORE: values.store,
    PAWL_NAMESPACE: QUEUE.namespace,
    ...(emulator && { GOOGLE_CLOUD_PROJECT: "bench", FIRESTORE_EMULATOR_HOST: emulator.host }),
  };
  const begun = performance.now();
  await load(env, count);
  console.log(
    `${count} sequences (journals ${shares.journals}, live ${shares.live}, ${values.store}), loaded in ${seconds(performance.now() - begun)}`,
  );
  const left = Math.max(0, MOMENT - (performance.now() - begun));
  await new Promise((resolve) => setTimeout(resolve, left));
  const given = [String(count), "--journals", values.journals, "--live", values.live, "--child"];
  const ran = spawnSync(process.execPath, [HEAP, fileURLToPath(import.meta.url), ...given], {
    env: { PATH: process.env.PATH, ...env },
    stdio: "inherit",
  });
  if (ran.status !== 0) process.exitCode = 1;
}

async function load(env: Record<string, string>, count: number): Promise<void> {
  await using deps = await wire(configFrom(env), () => {});
  await loadTasks(deps, QUEUE, { ...shares, count });
}

async function child(loaded: Load): Promise<void> {
  await using deps = await wire(configFrom(process.env), () => {});
  const rest = process.memoryUsage.rss();
  const { count, live = 0 } = loaded;
  const waiting = Math.round(live * count);
  const first = await report(deps, "first report", { created: count, waiting });
  say(
    `first report: ${mb(process.resourceUsage().maxRSS * 1024 - rest)} MB more than at rest (${mb(rest)} MB)`,
  );
  const reading = await timed(() => readAll(deps));
  const own = (part: "ms" | "cpu") => Math.round(100 * (1 - reading[part] / first[part]));
  say(
    `only reading all documents: ${said(reading)}; the rest is ${own("ms")} % of the time, ${own("cpu")} % of the CPU`,
  );
  await report(deps, "second report, nothing new", { created: count, waiting });
  await loadTasks(deps, QUEUE, { ...loaded, after: count, count: CHANGES });
  const more = { created: count + CHANGES, waiting: waiting + Math.round(live * CHANGES) };
  await report(deps, `third report, ${CHANGES} changes`, more);
  say(`all of them: ${mb(process.resourceUsage().maxRSS * 1024 - rest)} MB more than at rest`);
}

async function timed(work: () => Promise<void>): Promise<Took> {
  const [begun, before] = [performance.now(), process.cpuUsage()];
  await work();
  const { user, system } = process.cpuUsage(before);
  return { ms: performance.now() - begun, cpu: (user + system) / 1000 };
}

async function report(
  deps: Wired,
  what: string,
  expected: { readonly created: number; readonly waiting: number },
): Promise<Took> {
  let done: Reconciled | undefined;
  const took = await timed(async () => {
    done = await reconcile(deps, new AbortController().signal, { repair: true, writers });
  });
  if (!done) throw new Error("it ran out of time");
  const { named } = done.report.findings;
  const { created, completed } = total(done.report.agents);
  const waiting = done.report.live[QUEUE.agent]?.waiting ?? 0;
  const isRight =
    named.length === 0 &&
    created === expected.created &&
    waiting === expected.waiting &&
    completed === created - waiting;
  if (!isRight) process.exitCode = 1;
  say(
    `${what}: ${said(took)}, ${done.documents} documents; created ${created}, completed ${completed}, waiting ${waiting}, findings ${named.length}${isRight ? "" : ` WRONG: expected ${JSON.stringify(expected)}`}`,
  );
  say(`  ${done.listed.verdict}`);
  return took;
}

async function readAll({ store }: Wired): Promise<void> {
  for (let cursor: string | undefined, isLast = false; !isLast; )
    ({ cursor, isLast } = await store.changes(cursor, store.pageSize));
}
