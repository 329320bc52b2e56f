import agent, { name } from "pawl:agent";
import { agents } from "pawl:agents";
import { familyOf } from "../shared/definition.ts";
import { runWoken } from "../shared/runner/woken.ts";
import { lanesOf } from "./wiring/lanes.ts";
import { modelOf } from "./wiring/model.ts";
import type { Job } from "./wiring/run.ts";
import { checkSecrets } from "./wiring/secrets.ts";

/** Runs what is in the agent's queues, until there is nothing to take or the time is nearly spent. */
export const job: Job = {
  name,
  reaches: familyOf(name, agents),
  secrets: agent.secrets,
  run: async (wired, stop, config) => {
    checkSecrets(name, agent.secrets, process.env);
    const deps = { ...wired, ...modelOf(config, wired.nc), lanesOf };
    const { dispatched, handled } = await runWoken(deps, { name, agent, stop });
    return { agent: name, ended: stop.aborted ? "out of time" : "idle", dispatched, handled };
  },
};
