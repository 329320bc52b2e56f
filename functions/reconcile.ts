import { agents } from "pawl:agents";
import { reconcile } from "../shared/journey/reconcile-report.ts";
import { writers } from "../shared/report/writers.ts";
import type { Job } from "./run.ts";

const lanes = Object.fromEntries(agents.map((agent) => [agent.name, agent.lanes]));

/** Explains every sequence since the last time, and writes the week's report. */
export const job: Job = {
  name: "reconcile",
  run: async (deps, stop) => {
    const done = await reconcile(deps, stop, { repair: true, writers, lanes });
    if (!done) {
      // Out of time: it calls itself, and goes on.
      deps.wake?.("reconcile");
      return { finished: false };
    }
    const { name, verdict, ok } = done.listed;
    return { finished: true, report: name, ok, verdict, documents: done.documents };
  },
};
