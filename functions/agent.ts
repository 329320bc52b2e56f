import agent, { name } from "pawl:agent";
import { serve } from "../shared/journey/serve.ts";
import { dispatchDue } from "../shared/journey/sweep.ts";
import { lanesOf } from "./lanes.ts";
import { modelOf } from "./model.ts";
import type { Job } from "./run.ts";

/** Runs what is in the agent's queues, until there is nothing to take or the time is nearly spent. */
export const job: Job = {
  name,
  run: async (wired, stop, config) => {
    const deps = { ...wired, ...modelOf(config), lanesOf };
    // Throws where the store is away: nothing is taken that could not be claimed.
    const dispatched = await dispatchDue(deps, name, stop, agent.limits);
    const handled = await serve(name, agent, "idle", stop, deps);
    return { agent: name, ended: stop.aborted ? "out of time" : "idle", dispatched, handled };
  },
};
