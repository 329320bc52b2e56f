import { buryGivenUp } from "../../shared/dispatch/advisories.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import type { Invocation } from "../../shared/ports/deps.ts";
import type { Model } from "../../shared/ports/model.ts";
import { serve } from "../../shared/runner/serve.ts";
import { runWoken } from "../../shared/runner/woken.ts";
import { agentOf } from "./handler.ts";
import type { RunnerPlan } from "./plan/plan.ts";
import { BEGIN, type Simulation } from "./simulation.ts";
import { simulatedModel } from "./world/model.ts";
import type { Process } from "./world/process.ts";
import { random } from "./world/random.ts";

const MINUTE = 60_000;

/** A runner comes, and comes again whenever it is gone: a process at once, a function with the next minute. */
export function keepRunning(simulation: Simulation, runner: RunnerPlan): void {
  const { time } = simulation;
  time.at(time.now + runner.after, () => {
    const process = simulation.begin(runner.name, runner.skew);
    simulation.tell(process.name, "begins");
    const again = () => {
      const wait = runner.limit === undefined ? runner.after : MINUTE - ((time.now - BEGIN) % MINUTE);
      keepRunning(simulation, { ...runner, after: wait });
    };
    const work = () =>
      runner.limit === undefined
        ? serveForever(simulation, process, runner)
        : invoke(simulation, process, runner, runner.limit);
    process.wake(() => simulation.live(process, work, again));
  });
}

function agentsOf(simulation: Simulation, process: Process, runner: RunnerPlan) {
  const { oracle, outside, plan } = simulation;
  const { main, child } = plan.agents;
  const agent = (name: "main" | "child", version: number) => {
    const lanes = simulation.lanesOf(name) as number;
    return {
      name,
      agent: agentOf({ process, outside, oracle }, { ...(name === "main" ? main : child), lanes }, version),
    };
  };
  const isParent = JSON.stringify(main.program).includes('"do":"child"');
  return [agent("main", runner.version), ...(isParent ? [agent("child", 1)] : [])];
}

function modelFor({ time, plan, oracle }: Simulation, process: Process): Model {
  const own = random(plan.seed, `model of ${process.name}`);
  return simulatedModel(time, own, process, (asked, turn, usd) => oracle.charged(asked, turn, usd));
}

async function serveForever(simulation: Simulation, process: Process, runner: RunnerPlan): Promise<void> {
  const deps = simulation.depsOf(process, { model: modelFor(simulation, process) });
  const { signal: stop } = process.stop;
  const agents = agentsOf(simulation, process, runner);
  await Promise.all(agents.map(({ name, agent }) => serve(deps, { name, agent, mode: "forever", stop })));
}

/** As a function's entry does it: with an end, before which it is told to stop, and at which it is no more. */
async function invoke(
  simulation: Simulation,
  process: Process,
  runner: RunnerPlan,
  limit: number,
): Promise<void> {
  const { time, settings } = simulation;
  const reserve = settings.stopGrace + settings.requestTimeout;
  const end = time.now + limit - reserve;
  const invocation: Invocation = { left: () => Math.max(0, end - time.now), longest: limit - reserve };
  time.at(end, () => process.wake(() => process.stop.abort(new Error("out of time"))));
  time.at(end + reserve, () => process.die());
  const deps = simulation.depsOf(process, { model: modelFor(simulation, process), invocation });
  const { signal: stop } = process.stop;
  for (const { name, agent } of agentsOf(simulation, process, runner))
    await runWoken(deps, { name, agent, stop });
}

/** What the function `dispatch` does every minute. */
export function keepDispatching(simulation: Simulation): void {
  const { time } = simulation;
  time.at(time.now + MINUTE, () => {
    keepDispatching(simulation);
    const process = simulation.begin("dispatch");
    const deps = simulation.depsOf(process);
    const { signal: stop } = process.stop;
    const work = async () => {
      await buryGivenUp(deps, stop);
      for (const agent of ["main", "child"])
        await dispatchDue(deps, agent, stop, {
          lanes: simulation.lanesOf(agent) ?? 1,
          dispatchTimeout: MINUTE,
        });
    };
    process.wake(() => simulation.live(process, work, () => {}));
  });
}
