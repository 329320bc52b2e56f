import { aliveAt } from "../../dispatch/alive.ts";
import { agentQueues } from "../../dispatch/queues.ts";
import { counters, series } from "../../meter/counters.ts";
import { readCounts } from "../../meter/meter.ts";
import { storeFill } from "../../quota/pressure.ts";
import { type ReportList, readReportList } from "../../reconcile/books/reports.ts";
import { findingKinds } from "../../reconcile/findings/findings.ts";
import type { FindingKind } from "../../reconcile/findings/kind.ts";
import { mayUse } from "../authorize.ts";
import type { Request, WebAgent } from "../context.ts";

const gauges = {
  queue_pending: ["Tasks in a queue that wait to be taken.", "pending"],
  queue_in_flight: ["Tasks that were taken and are not acked.", "inFlight"],
  queue_redelivered: ["Deliveries under way for the second time or more.", "redelivered"],
  queue_oldest_seconds: ["Age of the oldest message in a queue.", "oldestAge"],
} as const;

/** Whoever may see all agents sees these: of the newest week's report, and when Pawl's own functions came last. */
const reported = {
  report_findings:
    "Findings of the newest report that somebody has to do something about, by kind; severity broken or look.",
  report_age_seconds: "Since the last reconciliation looked.",
  dispatch_age_seconds: "Since the dispatch function came last.",
} as const;

/** Where the store has an end. */
const stored = {
  store_bytes: ["Bytes in the store that has an agent's documents.", "bytes"],
  store_limit_bytes: ["Most that it takes. From four fifths of it on submits are refused.", "limit"],
} as const;

interface Asked {
  readonly agents: readonly WebAgent[];
}

export async function agentList(c: Request, { agents }: Asked): Promise<Response> {
  const { deps, token } = c.var;
  const mine = agents.filter(({ name }) => mayUse(token, name));
  const queues = await agentQueues(deps, mine);
  const schemaOf = (name: string) => mine.find((agent) => agent.name === name)?.inputSchema;
  return c.json({ agents: queues.map((one) => ({ ...one, inputSchema: schemaOf(one.name) })) });
}

/** Counters and queues, as text that Prometheus reads. */
export async function metrics(c: Request, { agents }: Asked): Promise<Response> {
  const { deps, token } = c.var;
  const mine = agents.filter(({ name }) => mayUse(token, name));
  await deps.meter.flush();
  const [counts, queues, fills, seen] = await Promise.all([
    readCounts(deps.store),
    agentQueues(deps, mine),
    Promise.all(mine.map(async ({ name }) => ({ agent: name, fill: await storeFill(deps, name) }))),
    token.agents ? undefined : Promise.all([readReportList(deps.store), aliveAt(deps.store)]),
  ]);
  const isMine = (line: string) => {
    const agent = /agent="([^"]*)"/.exec(line)?.[1];
    return agent === undefined || mayUse(token, agent);
  };
  const lines: string[] = [];
  for (const [name, help] of Object.entries(counters)) {
    const all = Object.entries(counts).filter(([key]) => key.startsWith(`pawl_${name}_total`));
    lines.push(`# HELP pawl_${name}_total ${help}`, `# TYPE pawl_${name}_total counter`);
    lines.push(...all.filter(([key]) => isMine(key)).map(([key, value]) => `${key} ${value}`));
  }
  for (const [name, [help, field]] of Object.entries(gauges)) {
    lines.push(`# HELP pawl_${name} ${help}`, `# TYPE pawl_${name} gauge`);
    const unit = field === "oldestAge" ? 1_000 : 1;
    for (const queue of queues) lines.push(`${series(name, { agent: queue.name })} ${queue[field] / unit}`);
  }
  lines.push(
    "# HELP pawl_agent_paused 1 while nothing new of an agent begins.",
    "# TYPE pawl_agent_paused gauge",
  );
  for (const { name: agent, paused } of queues)
    lines.push(`${series("agent_paused", { agent })} ${paused ? 1 : 0}`);
  for (const [name, [help, field]] of Object.entries(stored)) {
    lines.push(`# HELP pawl_${name} ${help}`, `# TYPE pawl_${name} gauge`);
    for (const { agent, fill } of fills) if (fill) lines.push(`${series(name, { agent })} ${fill[field]}`);
  }
  for (const [name, help] of Object.entries(reported)) {
    lines.push(`# HELP pawl_${name} ${help}`, `# TYPE pawl_${name} gauge`);
    if (seen) lines.push(...reportSamples(name as keyof typeof reported, ...seen, deps.clock.now()));
  }
  c.header("content-type", "text/plain; version=0.0.4; charset=utf-8");
  return c.body(`${lines.join("\n")}\n`);
}

/** None where there was no reconciliation yet, or no dispatch. */
function reportSamples(
  name: keyof typeof reported,
  { reports, at }: ReportList,
  dispatched: number | undefined,
  now: number,
): string[] {
  const age = (since: number | undefined) =>
    since === undefined ? [] : [`pawl_${name} ${Math.max(0, now - since) / 1_000}`];
  if (name === "report_age_seconds") return age(at);
  if (name === "dispatch_age_seconds") return age(dispatched);
  const week = reports.find((one) => one.name.includes("W"));
  if (!week?.left) return [];
  const { left } = week;
  return Object.entries<FindingKind>(findingKinds)
    .filter(([, { severity }]) => severity !== "note")
    .map(([finding, { severity }]) => `${series(name, { finding, severity })} ${left[finding] ?? 0}`);
}
