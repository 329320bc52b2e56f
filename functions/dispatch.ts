import { agents } from "pawl:agents";
import { dispatchDue } from "../shared/journey/dispatch.ts";
import type { Job } from "./run.ts";

/** Publishes what is due: retries, and what was left half dispatched. */
export const job: Job = {
  name: "dispatch",
  run: async (deps, stop) => {
    const dispatched: Record<string, number> = {};
    for (const { name, dispatchTimeout } of agents) {
      if (stop.aborted) break;
      dispatched[name] = await dispatchDue(deps, name, stop, dispatchTimeout);
    }
    return { dispatched };
  },
};
