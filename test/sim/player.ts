import { planOf } from "./plan/plan.ts";
import { play } from "./play.ts";
import type { Batch, Found, Outcome, Told } from "./search.ts";
import { takeGlobals } from "./world/globals.ts";

// Stacks cost more than all else, and nobody reads them here: a broken seed is played again.
Error.stackTraceLimit = 0;
const globals = takeGlobals();

async function search({ from, count, plan }: Batch): Promise<Outcome> {
  const faults: Record<string, number> = {};
  let seeds = 0;
  let steps = 0;
  let found: Found | undefined;
  for (let seed = from; seed < from + count && !found; seed++) {
    const played = await play(plan ?? planOf(seed), globals);
    seeds++;
    steps += played.steps;
    for (const [kind, times] of played.faults) faults[kind] = (faults[kind] ?? 0) + times;
    const { broken } = played;
    if (broken) found = { seed, promise: broken.promise, message: broken.message };
  }
  return { seeds, steps, faults, ...(found && { broken: found }) };
}

process.on("message", async (asked: Batch | Told) => {
  process.send?.("count" in asked ? await search(asked) : await play(asked.plan, globals, true));
});
