/** The one module that agents' tests import: a handler, proven in milliseconds, with no service. */
import "./values/older-node.ts";
import type { Agent } from "./agent.ts";
import { type AgentRun, type RunOptions, runAgent } from "./testing/run-agent.ts";
import type { JsonObject } from "./values/json.ts";

export { type ReplaysOptions, replays } from "./testing/replays.ts";
export { type AgentRun, type RunOptions, runAgent } from "./testing/run-agent.ts";
export { asks, type ModelScript, type ScriptedTurn } from "./testing/scripted-model.ts";

/** A run in which the process died once. */
export interface CrashedRun {
  /** "before 3" or "after 3": which entry of the journal. */
  readonly crash: string;
  /** What became of the task. */
  readonly run: AgentRun;
}

type Options = Omit<RunOptions, "crashAfter" | "crashBefore">;

/**
 * The same task once for every point at which its process can die: before and after each entry of its journal.
 * `options` may be a function, called before each run: where the world outside is to be a new one.
 */
export async function everyCrash(
  agent: Agent,
  input: JsonObject,
  options: Options | (() => Options) = {},
): Promise<CrashedRun[]> {
  const fresh = typeof options === "function" ? options : () => options;
  const { journal } = await runAgent(agent, input, fresh());
  const runs: CrashedRun[] = [];
  for (let at = 1; at <= journal.length; at++) {
    runs.push({ crash: `before ${at}`, run: await runAgent(agent, input, { ...fresh(), crashBefore: at }) });
    runs.push({ crash: `after ${at}`, run: await runAgent(agent, input, { ...fresh(), crashAfter: at }) });
  }
  return runs;
}
