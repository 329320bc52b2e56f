/**
 * How long a reconciliation takes, and how much memory: 10,000, 100,000 and 1,000,000 sequences, each with its document,
 * loaded straight into NATS KV. Each is explained in a process of its own; the store's own time is that of reading all
 * documents and doing nothing with them. Every one of them must raise no finding.
 */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { configFrom } from "../functions/config.ts";
import { wire } from "../functions/wire.node.ts";
import { startNats } from "../infra/local/nats-server.ts";
import { reconcile } from "../shared/journey/reconcile-report.ts";
import { writers } from "../shared/report/writers.ts";
import { loadTasks } from "./load.ts";

/** As on a small function: left alone, Node lets garbage pile up before it looks. */
const HEAP = "--max-old-space-size=128";
const seconds = (ms: number | undefined) => `${((ms ?? 0) / 1000).toFixed(1)} s`;
const mb = (bytes: number | undefined) => Math.round((bytes ?? 0) / 1024 / 1024);

const sizes = process.argv.slice(2).map(Number).filter(Boolean);
if (process.env.PAWL_DEMO_CHILD) await child();
else await parent(sizes.length > 0 ? sizes : [10_000, 100_000, 1_000_000]);

async function parent(counts: readonly number[]): Promise<void> {
  let last: { count: number; all: number } | undefined;
  for (const count of counts) {
    await using nats = await startNats();
    const env = { NATS_URL: nats.url, PAWL_STORE: "nats-kv", PAWL_NAMESPACE: "bench" };
    {
      await using deps = await wire(configFrom(env), () => {});
      await loadTasks(deps, { namespace: "bench", agent: "echo", lane: 0, generation: 1 }, count);
    }
    const ran = spawnSync(process.execPath, [HEAP, fileURLToPath(import.meta.url)], {
      env: { PATH: process.env.PATH, ...env, PAWL_DEMO_CHILD: "1" },
      encoding: "utf8",
      maxBuffer: 1e8,
    });
    if (ran.status !== 0) throw new Error(ran.stderr);
    const { all, listing, before, rss, verdict, findings } = JSON.parse(ran.stdout) as Record<string, number>;
    const growth = last
      ? `, ${((all as number) / last.all).toFixed(1)} x the time of ${count / last.count} x fewer`
      : "";
    console.log(
      `${count} sequences: ${seconds(all)}${growth}; reading all documents and doing nothing took ${seconds(listing)}; ${mb((rss as number) - (before as number))} MB more than at rest (${mb(rss)} MB). ${verdict} Findings: ${findings}`,
    );
    if (findings !== 0) process.exitCode = 1;
    last = { count, all: all as number };
  }
}

async function child(): Promise<void> {
  await using deps = await wire(configFrom({ ...process.env, PAWL_DEMO_CHILD: undefined }), () => {});
  const before = process.memoryUsage.rss();
  const begun = performance.now();
  const done = await reconcile(deps, new AbortController().signal, { repair: true, writers });
  const all = performance.now() - begun;
  const rss = process.resourceUsage().maxRSS * 1024;
  const findings = done?.report.findings.named.length;
  const listed = performance.now();
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor; isFirst = false)
    ({ cursor } = await deps.store.list({}, deps.store.pageSize, cursor));
  const listing = performance.now() - listed;
  console.log(JSON.stringify({ all, listing, before, rss, findings, verdict: done?.listed.verdict }));
}
