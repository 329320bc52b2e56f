import { pauseOf } from "../../pause/pause.ts";
import type { Deps } from "../../ports/deps.ts";
import type { Account } from "../account.ts";
import type { Finding } from "./findings.ts";

/** Agents that somebody has paused: a pause is easily forgotten. */
export async function pausedFindings({ store }: Deps, { plan, live }: Account): Promise<Finding[]> {
  const agents = new Set([...plan.queues.map(({ queue }) => queue.agent), ...Object.keys(live)]);
  const findings = [...agents].sort().map(async (agent): Promise<Finding[]> => {
    const paused = await pauseOf(store, agent);
    if (!paused) return [];
    const { at, by, why } = paused;
    const tasks = Object.values(live[agent] ?? {}).reduce((sum, count) => sum + count, 0);
    const said = `since ${new Date(at).toISOString()} by ${by}${why === undefined ? "" : `: ${why}`}; ${tasks} tasks are not over`;
    return [{ kind: "agent_paused", subject: agent, agent, detail: said }];
  });
  return (await Promise.all(findings)).flat();
}
