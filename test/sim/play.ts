import { writers } from "../../shared/reconcile/page/writers.ts";
import { reconcile } from "../../shared/reconcile/reconcile.ts";
import { isFinal } from "../../shared/task/table.ts";
import { keepAnswering, planOperations, publishDirectly } from "./operator.ts";
import type { Broken } from "./oracle.ts";
import type { Plan, ServerFault } from "./plan/plan.ts";
import { keepDispatching, keepRunning } from "./runners.ts";
import { BEGIN, type Line, Simulation } from "./simulation.ts";
import type { Globals } from "./world/globals.ts";

/** How a plan came out. */
export interface Played {
  readonly broken?: Broken;
  readonly story: readonly Line[];
  readonly steps: number;
  /** How often each kind of fault came true. */
  readonly faults: ReadonlyMap<string, number>;
}

/** After the calm, tasks have so long to end: the longest of them are retries, deadlines, and looks at children. */
const PATIENCE = 3 * 3_600_000;

/** Plays a plan to its end: until a promise is broken, or all has ended and is explained. */
export async function play(plan: Plan, globals: Globals, isTold = false): Promise<Played> {
  const simulation = new Simulation(plan, globals, isTold);
  const { time, oracle, broker } = simulation;
  const operations = planOperations(simulation);
  for (const runner of plan.runners) keepRunning(simulation, runner);
  keepDispatching(simulation);
  keepAnswering(simulation);
  for (const fault of plan.serverFaults) planServerFault(simulation, fault);
  time.at(BEGIN + plan.calmAt, () => {
    // Where a runner is cut off for good, somebody puts another one there.
    if (simulation.isShort) keepRunning(simulation, { name: "well", version: 1, skew: 0, after: 1 });
    simulation.calm();
  });
  const isOver = () => {
    if (operations.left() > 0 || oracle.open > 0) return false;
    for (const stream of broker.streams.values()) if (stream.messages.size > 0) return false;
    return true;
  };
  const isEnded = await simulation.run(isOver, plan.calmAt + PATIENCE);
  if (!isEnded) oracle.breaks("everything ends", unfinished(simulation));
  if (!simulation.broken && plan.isReconciled) await explain(simulation);
  const { broken, story, steps, network } = simulation;
  return { ...(broken && { broken }), story, steps, faults: network.counts };
}

function unfinished({ oracle, broker }: Simulation): string {
  const open = [...oracle.tasks.values()].filter((task) => !isFinal(task));
  const tasks = open.map(({ id, state, history }) => `${id} is ${state} since ${history.at(-1)?.event}`);
  const messages = [...broker.streams.values()].flatMap(({ name, messages }) =>
    [...messages.keys()].map((seq) => `sequence ${seq} of ${name} lies in its queue`),
  );
  return [...tasks, ...messages].join("; ") || "an operation got no answer";
}

function planServerFault(simulation: Simulation, fault: ServerFault): void {
  const { time, network, broker, oracle } = simulation;
  const count = () => {
    network.counts.set(fault.kind, (network.counts.get(fault.kind) ?? 0) + 1);
    simulation.tell("world", `${fault.kind} ${JSON.stringify(fault)}`);
  };
  time.at(BEGIN + fault.at, () => {
    if (simulation.isCalm) return;
    count();
    switch (fault.kind) {
      case "the broker is killed":
        network.isUp.bus = false;
        time.at(time.now + fault.ms, () => {
          network.isUp.bus = true;
          broker.restart(fault.forgets);
        });
        return;
      case "the store is away":
        network.isUp.store = false;
        time.at(time.now + fault.ms, () => {
          network.isUp.store = true;
        });
        return;
      case "the consumer is changed": {
        const { ackWait, maxDeliver } = fault;
        for (const stream of broker.streams.values())
          stream.change({ ...(ackWait && { ackWait }), ...(maxDeliver && { maxDeliver }) });
        return;
      }
      case "a message vanishes":
        for (const stream of broker.streams.values()) {
          const [seq] = stream.messages.keys();
          if (seq === undefined) continue;
          oracle.vanishes(stream.name, seq);
          stream.remove(seq);
          return;
        }
        return;
      case "a message is published by hand": {
        const process = simulation.begin("stranger");
        const publish = () =>
          publishDirectly(simulation.depsOf(process), fault.task, `by hand:${fault.task}`);
        process.wake(() => simulation.live(process, publish, () => {}));
        return;
      }
      default:
        fault satisfies never;
    }
  });
}

/** Two reports in a row: nothing that was not planted may be found, and the second has nothing left to say. */
async function explain(simulation: Simulation): Promise<void> {
  const { oracle, plan } = simulation;
  simulation.calm();
  for (const which of ["first", "second"]) {
    const process = simulation.begin("reconcile");
    const deps = simulation.depsOf(process);
    const findings: string[] = [];
    let isDone = false;
    let isNamed = false;
    const work = async () => {
      const lanes = { main: plan.agents.main.lanes, child: 1 };
      const done = await reconcile(deps, process.stop.signal, { repair: true, writers, lanes });
      for (const [name, count] of Object.entries(done?.report.findings.counts ?? { none: 1 }))
        if (count > 0 && !isPlanted(plan, name)) findings.push(`${name} ${count}`);
        else if (count > 0 && NAMED["a message vanishes"].includes(name)) isNamed = true;
      isDone = true;
    };
    process.wake(() => simulation.live(process, work, () => {}));
    await simulation.run(() => isDone, 3_600_000);
    if (!isDone) oracle.breaks("everything explained", `the ${which} reconciliation does not end`);
    else if (which === "first" && oracle.vanished > 0 && !isNamed)
      oracle.breaks(
        "everything explained",
        `${oracle.vanished} messages vanished, and the report does not say so`,
      );
    else if (findings.length > 0)
      oracle.breaks("everything explained", `the ${which} report finds: ${findings.join(", ")}`);
    if (simulation.broken) return;
  }
}

/** What a report may find because of what was planted. */
const NAMED: Readonly<Record<ServerFault["kind"], readonly string[]>> = {
  "the broker is killed": [],
  "the store is away": [],
  "a message is published by hand": [],
  "the consumer is changed": ["queue_unsafe"],
  "a message vanishes": ["unexplained", "message_lost"],
};

function isPlanted({ serverFaults }: Plan, finding: string): boolean {
  return serverFaults.some(({ kind }) => NAMED[kind].includes(finding));
}
