import { dispatchDue } from "../dispatch/sweep.ts";
import { watchPause } from "../pause/watch.ts";
import type { Deps } from "../ports/deps.ts";
import { readyLanes } from "./lanes.ts";
import { type HandledCounts, type Served, serve } from "./serve.ts";

/**
 * What an agent's function does when it is woken: sweeps, then runs what is in the agent's queues until there is nothing to
 * take or it is told to stop. Throws where the store is away: nothing is taken that could not be claimed.
 *
 * Its lanes are looked at while it sweeps. What is published after that look is taken by whoever is woken for it.
 */
export async function runWoken(
  deps: Deps,
  { name, agent, stop }: Pick<Served, "name" | "agent" | "stop">,
): Promise<{ readonly dispatched: number; readonly handled: HandledCounts }> {
  const looked = readyLanes(deps, name, agent.limits.lanes, "idle");
  looked.catch(() => {});
  const dispatched = await dispatchDue(deps, name, stop, agent.limits).catch((error: unknown) => {
    void looked.then(({ pause }) => pause.close()).catch(() => {});
    throw error;
  });
  let lanes = await looked;
  if (dispatched > 0) {
    // What this sweep has dispatched came after the look.
    lanes.pause.close();
    lanes = { ...lanes, seen: new Map(), pause: await watchPause(deps, name) };
  }
  return { dispatched, handled: await serve(deps, { name, agent, mode: "idle", stop, lanes }) };
}
