import type { Plan } from "./plan/plan.ts";
import type { Action, Program } from "./plan/program.ts";
import { play } from "./play.ts";
import type { PromiseName } from "./promises.ts";
import type { Globals } from "./world/globals.ts";

const MOST_TRIES = 400;

/** A smaller plan that breaks the same promise: whatever can be left out, one thing after the other, is. */
export async function shrink(plan: Plan, promise: PromiseName, globals: Globals): Promise<Plan> {
  let smallest = plan;
  let tries = 0;
  for (let isSmaller = true; isSmaller && tries < MOST_TRIES; ) {
    isSmaller = false;
    for (const smaller of smallerThan(smallest)) {
      if (++tries > MOST_TRIES) break;
      const { broken } = await play(smaller, globals);
      if (broken?.promise !== promise) continue;
      smallest = smaller;
      isSmaller = true;
      break;
    }
  }
  return smallest;
}

/** Every plan that has one thing less, the largest things first. */
function* smallerThan(plan: Plan): Generator<Plan> {
  const { main } = plan.agents;
  for (const runners of without(plan.runners)) if (runners.length > 0) yield { ...plan, runners };
  for (const faults of without(plan.faults)) yield { ...plan, faults };
  for (const serverFaults of without(plan.serverFaults)) yield { ...plan, serverFaults };
  for (const operations of without(plan.operations)) yield { ...plan, operations };
  for (const redrives of without(plan.redrives ?? [])) yield { ...plan, redrives };
  for (const program of smallerPrograms(main.program))
    yield { ...plan, agents: { ...plan.agents, main: { ...main, program } } };
  if (plan.losses > 0) yield { ...plan, losses: 0 };
  if (plan.isReplicated) yield { ...plan, isReplicated: false };
  if (plan.isReconciled) yield { ...plan, isReconciled: false };
  for (const [i, runner] of plan.runners.entries()) {
    if (runner.skew !== 0) yield { ...plan, runners: plan.runners.with(i, { ...runner, skew: 0 }) };
    if (runner.version !== 1) yield { ...plan, runners: plan.runners.with(i, { ...runner, version: 1 }) };
  }
}

function without<T>(list: readonly T[]): T[][] {
  return list.map((_, i) => list.toSpliced(i, 1));
}

function smallerPrograms(program: Program): Program[] {
  const inside = program.flatMap((action, i) =>
    partsOf(action).map((parts) => [...program.slice(0, i), ...parts, ...program.slice(i + 1)]),
  );
  return [...without(program), ...inside];
}

/** What an action that has parts can be replaced by. */
function partsOf(action: Action): Program[] {
  switch (action.do) {
    case "loop":
    case "nested":
      return [action.body];
    case "parallel":
      return [
        ...action.branches.map((branch) => branch),
        ...(action.branches.length > 2
          ? without(action.branches).map((branches): Program => [{ ...action, branches }])
          : []),
      ];
    case "version":
      return [action.before, action.from2];
    default:
      return [];
  }
}
