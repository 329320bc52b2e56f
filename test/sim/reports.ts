import type { Deps } from "../../shared/ports/deps.ts";
import { writers } from "../../shared/reconcile/page/writers.ts";
import { reconcile } from "../../shared/reconcile/reconcile.ts";
import type { Plan, ServerFault } from "./plan/plan.ts";
import type { Simulation } from "./simulation.ts";
import type { Process } from "./world/process.ts";

/** What a report may find because of what was planted. */
const NAMED: Readonly<Record<ServerFault["kind"], readonly string[]>> = {
  "the broker is killed": [],
  "the store is away": [],
  "a message is published by hand": [],
  "the consumer is changed": ["queue_unsafe"],
  "a message vanishes": ["unexplained", "message_lost"],
};

/**
 * Reconciles, and says what was found that was not planted; undefined when it was cut off. What was planted and is named is
 * remembered. One that only finishes what was begun before tells of then, when somebody may have been asked.
 */
export async function report(
  simulation: Simulation,
  deps: Deps,
  process: Process,
): Promise<string[] | undefined> {
  const begun = deps.clock.now();
  const done = await reconciled(simulation, deps, process);
  if (!done) return undefined;
  const isOfThen = done.report.span.to < begun;
  const found = Object.entries(done.report.findings.counts).filter(([, count]) => count > 0);
  for (const [name] of found) simulation.named.add(name);
  const isRight = (name: string) => isPlanted(simulation.plan, name) || (isOfThen && name === "in_doubt");
  return found.flatMap(([name, count]) => (isRight(name) ? [] : [`${name} ${count}`]));
}

/** In one go, or slice after slice, for as long as each calls for the next. While faults last nobody hears that call. */
async function reconciled(simulation: Simulation, deps: Deps, { stop }: Process) {
  const lanes = { main: simulation.lanesOf("main") as number, child: 1 };
  const { sliceCalls: mostCalls } = simulation.plan;
  for (;;) {
    let goesOn = false;
    const goOn = () => {
      goesOn = true;
    };
    const slice = mostCalls !== undefined && { slice: { mostCalls, goOn } };
    const done = await reconcile(deps, stop.signal, { repair: true, writers, lanes, ...slice });
    if (done || !goesOn || !simulation.isCalm) return done;
  }
}

function isPlanted({ serverFaults }: Plan, finding: string): boolean {
  return serverFaults.some(({ kind }) => NAMED[kind].includes(finding));
}

/** Two reports in a row: nothing that was not planted may be found, and what was taken away has to be named. */
export async function explain(simulation: Simulation): Promise<void> {
  const { oracle, named } = simulation;
  simulation.calm();
  for (const which of ["first", "second"]) {
    const process = simulation.begin("reconcile");
    let found: string[] | undefined;
    const work = async () => {
      const deps = simulation.depsOf(process);
      // Another one may be at it still; whoever was cut off is woken again, a minute later.
      for (;;) {
        found = await report(simulation, deps, process);
        if (found) return;
        await process.clock.sleep(60_000);
      }
    };
    process.wake(() => simulation.live(process, work, () => {}));
    await simulation.run(() => found !== undefined, 3_600_000);
    const isNamed = NAMED["a message vanishes"].some((name) => named.has(name));
    const breaks = (why: string) => oracle.breaks("everything explained", why);
    if (!found) breaks(`the ${which} reconciliation does not end`);
    else if (found.length > 0) breaks(`the ${which} report finds: ${found.join(", ")}`);
    // The first may only finish one that was begun before.
    else if (which === "second" && oracle.vanished > 0 && !isNamed)
      breaks(`${oracle.vanished} messages vanished, and no report says so`);
    if (simulation.broken) return;
  }
}
