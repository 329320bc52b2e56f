import agent, { name } from "pawl:agent";
import { agents } from "pawl:agents";
import { serve } from "../shared/journey/serve.ts";
import { dispatchDue } from "../shared/journey/sweep.ts";
import { modelOf } from "./model.ts";
import type { Job } from "./run.ts";

const lanesOf = (other: string) => agents.find((one) => one.name === other)?.lanes;

/** Runs what is in the agent's queues, until there is nothing to take or the time is nearly spent. */
export const job: Job = {
  name,
  run: async (deps, stop, config) => {
    // Throws where the store is away: nothing is taken that could not be claimed.
    const dispatched = await dispatchDue(deps, name, stop, agent.limits);
    const handled = await serve(name, agent, "idle", stop, { ...deps, ...modelOf(config), lanesOf });
    return { agent: name, ended: stop.aborted ? "out of time" : "idle", dispatched, handled };
  },
};
