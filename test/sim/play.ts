import { isFinal } from "../../shared/task/table.ts";
import { keepAnswering, planOperations, publishDirectly } from "./operator.ts";
import type { Plan, ServerFault } from "./plan/plan.ts";
import type { Broken } from "./promises.ts";
import { keepRedriving } from "./redrives.ts";
import { explain } from "./reports.ts";
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
  const redrives = keepRedriving(simulation);
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
    if (operations.left() + redrives.left() + oracle.open > 0) return false;
    for (const stream of broker.streams.values()) if (stream.messages.size > 0) return false;
    return true;
  };
  const isEnded = await simulation.run(isOver, plan.calmAt + (plan.patience ?? PATIENCE));
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
