import { agents } from "pawl:agents";
import { levelOf } from "../shared/reconcile/books/reports.ts";
import { writers } from "../shared/reconcile/page/writers.ts";
import { reconcile } from "../shared/reconcile/reconcile.ts";
import type { Job } from "./wiring/run.ts";

const lanes = Object.fromEntries(agents.map((agent) => [agent.name, agent.lanes]));

/**
 * Explains every sequence since the last time, and writes the week's report. `mostFetches`: how many requests by fetch
 * an invocation may make for it, on platforms that count them; what goes over the NATS connection is none.
 */
export function job(mostFetches?: number): Job {
  return {
    name: "reconcile",
    run: async (deps, stop, { store, wakeUrl }) => {
      // Out of time, or out of calls: it calls itself, and goes on.
      const goOn = () => {
        if (wakeUrl === undefined)
          deps.log("error", "reconcile.not-woken", {
            todo: "Set PAWL_WAKE_URL: it needs longer than one invocation, and can't call itself",
          });
        deps.trigger?.("reconcile");
      };
      const isCounted = mostFetches !== undefined && store !== "nats-kv";
      const slice = { goOn, ...(isCounted && { mostCalls: mostFetches }) };
      const done = await reconcile(deps, stop, { repair: true, writers, lanes, slice });
      if (!done) return { finished: false };
      const { name, verdict, ok } = done.listed;
      const level = levelOf(done.listed);
      return { finished: true, report: name, ok, level, verdict, documents: done.documents };
    },
  };
}
