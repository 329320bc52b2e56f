import { agentQueues } from "../../dispatch/queues.ts";
import { counters, series } from "../../meter/counters.ts";
import { readCounts } from "../../meter/meter.ts";
import { mayUse } from "../authorize.ts";
import type { Request, WebAgent } from "../context.ts";

const gauges = {
  queue_pending: ["Tasks in a queue that wait to be taken.", "pending"],
  queue_in_flight: ["Tasks that were taken and are not acked.", "inFlight"],
  queue_redelivered: ["Deliveries under way for the second time or more.", "redelivered"],
  queue_oldest_seconds: ["Age of the oldest message in a queue.", "oldestAge"],
} as const;

interface Asked {
  readonly agents: readonly WebAgent[];
}

export async function agentList(c: Request, { agents }: Asked): Promise<Response> {
  const { deps, token } = c.var;
  const mine = agents.filter(({ name }) => mayUse(token, name));
  return c.json({ agents: await agentQueues(deps, mine) });
}

/** Counters and queues, as text that Prometheus reads. */
export async function metrics(c: Request, { agents }: Asked): Promise<Response> {
  const { deps, token } = c.var;
  const mine = agents.filter(({ name }) => mayUse(token, name));
  await deps.meter.flush();
  const [counts, queues] = await Promise.all([readCounts(deps.store), agentQueues(deps, mine)]);
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
  c.header("content-type", "text/plain; version=0.0.4; charset=utf-8");
  return c.body(`${lines.join("\n")}\n`);
}
