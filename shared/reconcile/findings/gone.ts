import type { Deps } from "../../ports/deps.ts";
import { advisoriesName, queueNamed, streamName } from "../../task/names.ts";
import type { Account } from "../account.ts";
import { countOf, showRanges } from "../books/sequences.ts";
import type { Finding } from "./findings.ts";

/** Streams and agents that went while there was something of theirs. */
export async function goneFindings(deps: Deps, account: Account): Promise<Finding[]> {
  // Once more: a queue may have been made after the plan.
  const now = await deps.bus.queues();
  const streams = streamsGone(deps, account, new Set(now.map(streamName)));
  const { queues, broken } = account.plan;
  const served = [...queues.map(({ queue }) => queue), ...broken, ...now, ...streams];
  const agents = agentsGone(deps, account, new Set(served.map(({ agent }) => agent)));
  return [...streams, ...agents, ...advisoriesGone(deps, account)];
}

/** A stream that was drained before it was deleted has nothing open, and no task names it. */
function streamsGone(deps: Deps, account: Account, there: ReadonlySet<string>): Finding[] {
  const { plan, books, elsewhere } = account;
  const names = new Set([...(plan.gone ?? []).map(({ stream }) => stream), ...Object.keys(elsewhere)]);
  return [...names].sort().flatMap((stream): Finding[] => {
    const agent = queueNamed(stream, deps.settings.namespace)?.agent;
    const open = books.get(stream)?.ranges("unexplained") ?? [];
    const tasks = there.has(stream) ? 0 : (elsewhere[stream] ?? 0);
    if (agent === undefined || open.length + tasks === 0) return [];
    const said = [
      ...(open.length > 0
        ? [`${countOf(open)} of its sequences were open and are settled by nobody: ${showRanges(open)}`]
        : []),
      ...(tasks > 0 ? [`${tasks} tasks are dispatched or running and should have a message in it`] : []),
    ];
    return [{ kind: "stream_gone", subject: stream, agent, detail: said.join("; ") }];
  });
}

/** `served`: agents that have a queue, or whose queue is named as gone. */
function agentsGone(deps: Deps, { live }: Account, served: ReadonlySet<string>): Finding[] {
  return Object.entries(live).flatMap(([agent, states]): Finding[] => {
    const isUnknown = deps.lanesOf !== undefined && deps.lanesOf(agent) === undefined;
    if (!isUnknown && served.has(agent)) return [];
    const counts = Object.entries(states).map(([state, count]) => `${count} ${state.replaceAll("_", " ")}`);
    const why = isUnknown ? "this deployment has no such agent" : "it has no queue";
    return [{ kind: "agent_gone", subject: agent, agent, detail: `${why}; its tasks: ${counts.join(", ")}` }];
  });
}

function advisoriesGone({ settings }: Deps, { plan }: Account): Finding[] {
  const { advisories, queues } = plan;
  if (!advisories || queues.length === 0) return [];
  const { since, before } = advisories;
  if (since !== undefined && (before === undefined || before === since)) return [];
  const detail = since === undefined ? "it does not exist" : `made anew at ${new Date(since).toISOString()}`;
  return [{ kind: "advisories_gone", subject: advisoriesName(settings), agent: "", detail }];
}
