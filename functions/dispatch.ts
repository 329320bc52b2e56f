import { agents } from "pawl:agents";
import { buryGivenUp } from "../shared/journey/advisories.ts";
import { submitTicks } from "../shared/journey/cron.ts";
import { dispatchDue } from "../shared/journey/sweep.ts";
import type { Job } from "./run.ts";

/** Looks after what nobody holds: due tasks, orphans, deadlines, messages given up on, ticks of the clock. */
export const job: Job = {
  name: "dispatch",
  run: async (deps, stop) => {
    const ticks = await submitTicks(deps, agents);
    const buried = await buryGivenUp(deps, stop);
    const dispatched: Record<string, number> = {};
    for (const { name, lanes, dispatchTimeout } of agents) {
      if (stop.aborted) break;
      dispatched[name] = await dispatchDue(deps, name, stop, { lanes, dispatchTimeout });
    }
    return { dispatched, buried, ticks };
  },
};
