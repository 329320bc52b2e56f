import { agents } from "pawl:agents";
import { trimAudit } from "../shared/audit/trim.ts";
import { buryGivenUp } from "../shared/dispatch/advisories.ts";
import { sayAlive } from "../shared/dispatch/alive.ts";
import { submitTicks } from "../shared/dispatch/cron.ts";
import { expireTasks } from "../shared/dispatch/expire.ts";
import { dispatchDue } from "../shared/dispatch/sweep.ts";
import { messageOf } from "../shared/errors/errors.ts";
import { isAbandoned } from "../shared/reconcile/progress.ts";
import { lanesOf } from "./wiring/lanes.ts";
import type { Job } from "./wiring/run.ts";

/** Looks after what nobody holds: due tasks, orphans, deadlines, messages given up on, ticks, what expired or is old, a cut-off report. */
export const job: Job = {
  name: "dispatch",
  run: async (wired, stop) => {
    const deps = { ...wired, lanesOf };
    // Waited for at the end: a store that takes no writes must not hold up what only NATS is needed for.
    const said = sayAlive(deps);
    const failures: unknown[] = [];
    // What goes wrong with one of them must not hold up the others.
    const attempt = async (what: string, work: () => Promise<number>): Promise<number> => {
      try {
        return stop.aborted ? 0 : await work();
      } catch (error) {
        failures.push(error);
        deps.log("error", "dispatch.stage-failed", { what, reason: messageOf(error) });
        return 0;
      }
    };
    const ticks = await attempt("schedules", () => submitTicks(deps, agents));
    const buried = await attempt("given up", () => buryGivenUp(deps, stop));
    const dispatched: Record<string, number> = {};
    for (const { name, lanes, dispatchTimeout } of agents) {
      dispatched[name] = await attempt(name, () => dispatchDue(deps, name, stop, { lanes, dispatchTimeout }));
    }
    const expired = await attempt("expiry", () => expireTasks(deps, stop));
    await attempt("audit", () => trimAudit(deps));
    await attempt("reconciliation", async () => {
      if (!(await isAbandoned(deps))) return 0;
      deps.log("warn", "reconcile.abandoned");
      deps.trigger?.("reconcile");
      return 1;
    });
    await said;
    if (failures.length > 0) throw failures[0];
    return { dispatched, buried, ticks, expired };
  },
};
