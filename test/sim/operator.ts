import { ensureQueue, queueOf } from "../../shared/dispatch/dispatch.ts";
import { cancel, redrive, resolve, signal } from "../../shared/dispatch/operate.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { isPawlError } from "../../shared/errors/errors.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import type { InDoubt } from "../../shared/task/document.ts";
import { approvalSignal } from "../../shared/task/signals.ts";
import { sha256 } from "../../shared/values/json.ts";
import type { Operation } from "./plan/plan.ts";
import { entryOf } from "./redrives.ts";
import { report } from "./reports.ts";
import type { Simulation } from "./simulation.ts";
import type { Process } from "./world/process.ts";

/** Carries out the plan's operations at their time, each as one who may be cut off and die like anybody else. */
export function planOperations(simulation: Simulation): { readonly left: () => number } {
  let left = simulation.plan.operations.length;
  const over = () => {
    left--;
  };
  for (const operation of simulation.plan.operations) {
    simulation.time.at(simulation.time.now + operation.at, () => attempt(simulation, operation, over));
  }
  return { left: () => left };
}

/** Until it is done, or refused: a submitter that got no answer asks again. */
export function attempt(simulation: Simulation, operation: Operation, over: () => void): void {
  const process = simulation.begin("operator");
  const isDone = { is: false };
  const work = async () => {
    const deps = simulation.depsOf(process);
    try {
      await operate(simulation, deps, process, operation);
      isDone.is = true;
    } catch (error) {
      if (!isPawlError(error)) throw error;
      // What may pass is tried again; what is refused is an answer.
      isDone.is = !/unavailable|queue_missing|queue_full/.test(error.code);
      throw error;
    }
  };
  process.wake(() => {
    simulation.tell(process.name, `${operation.do} ${operation.task}`);
    simulation.live(process, work, () => {
      if (isDone.is || operation.do === "reconcile") over();
      else simulation.time.at(simulation.time.now + 2_000, () => attempt(simulation, operation, over));
    });
  });
}

async function operate(
  simulation: Simulation,
  deps: Deps,
  process: Process,
  operation: Operation,
): Promise<void> {
  const { task: id } = operation;
  const by = { approved: true, by: "somebody" };
  switch (operation.do) {
    case "submit": {
      const lanes = simulation.lanesOf("main") as number;
      const queue = queueOf(deps, { agent: "main", lane: 0 });
      await ensureQueue(deps, queue, "create");
      const later = operation.in !== undefined && { at: deps.clock.now() + operation.in };
      const own = operation.msgId !== undefined && { msgId: operation.msgId };
      await submit(deps, { agent: "main", lanes, id, input: { task: id }, ...later, ...own });
      return;
    }
    case "publish":
      await publishDirectly(deps, id, `direct:${id}`);
      return;
    case "cancel":
      await cancel(deps, id);
      return;
    case "redrive":
      await redrive(deps, id);
      return;
    case "redrive from": {
      const from = entryOf(simulation.oracle.heads.get(id), operation.place);
      await redrive(deps, id, from === undefined ? {} : { from });
      return;
    }
    case "redrive from scratch":
      await redrive(deps, id, { fromScratch: true });
      return;
    case "approve":
      await signal(deps, id, approvalSignal(operation.name), by);
      return;
    case "reject":
      await signal(deps, id, approvalSignal(operation.name), { ...by, approved: false });
      return;
    case "send":
      await signal(deps, id, operation.name, { sent: true });
      return;
    case "resolve":
      await resolveTruly(simulation, deps, id);
      return;
    case "reconcile":
      // In the middle of it all: what it finds may be true, and is not looked at; what it writes must mislead no later one.
      await report(simulation, deps, process);
      return;
    default:
      operation satisfies never;
  }
}

/** A message of somebody who does not use Pawl's submit. */
export async function publishDirectly(deps: Deps, id: string, msgId: string): Promise<void> {
  const queue = queueOf(deps, { agent: "main", lane: 0 });
  await ensureQueue(deps, queue, "create");
  const data = new TextEncoder().encode(JSON.stringify({ id, agent: "main", input: { task: id } }));
  await deps.bus.publish(queue, { taskId: id, data, msgId, headers: {} });
}

/** Somebody finds out whether an effect in doubt happened: when nothing of it is under way any more. */
async function resolveTruly(simulation: Simulation, deps: Deps, id: string): Promise<void> {
  const task = simulation.oracle.tasks.get(id);
  if (task?.state !== "in_doubt" || !simulation.outside.isQuiet(id)) return;
  const happened = simulation.outside.happened.has(await effectKeyOf(deps, task));
  const answer = happened ? ({ happened: true, receipt: "found" } as const) : ({ happened: false } as const);
  await resolve(deps, id, answer, { effect: task.effect });
}

async function effectKeyOf({ settings }: Deps, { id, createdAt, epoch, effect }: InDoubt): Promise<string> {
  const again = epoch > 0 ? `/${epoch}` : "";
  return `pawl-${sha256(`${settings.namespace}/${id}/${createdAt}/${effect}${again}`).slice(0, 40)}`;
}

const LOOK_EVERY = 20_000;
/** So long somebody who was frozen, or cut off, may take to say that it never began the effect in doubt. */
const PATIENCE = 60_000;

/** When all is calm somebody answers whatever waits for a person. */
export function keepAnswering(simulation: Simulation): void {
  const { time, oracle } = simulation;
  time.at(time.now + LOOK_EVERY, () => {
    keepAnswering(simulation);
    if (!simulation.isCalm) return;
    for (const task of oracle.tasks.values()) {
      if (task.state === "in_doubt") {
        if (time.now - Math.max(task.updatedAt, simulation.calmSince) < PATIENCE) continue;
        oracle.asks(task, (name) => simulation.isWell(name));
      }
      const asks =
        task.state === "in_doubt" ? [task.effect] : task.state === "waiting" ? task.waitingFor : [];
      // An answer that nobody has taken yet need not be given again; one that a redrive has forgotten was taken. And a
      // deadline comes by itself.
      const head = oracle.heads.get(task.id);
      const taken = head && oracle.takenBy(head);
      const isAnswered = (name: string) =>
        task.signals.some((one, at) => one.name === name && !taken?.has(at));
      const isPersons = task.state === "in_doubt" || !("dueAt" in task);
      const names = asks.filter((name) => isPersons && !name.startsWith("child:") && !isAnswered(name));
      if (names.length === 0) continue;
      const process = simulation.begin("person");
      process.wake(() =>
        simulation.live(
          process,
          () => answer(simulation, process, task.id, names),
          () => {},
        ),
      );
    }
  });
}

async function answer(
  simulation: Simulation,
  process: Process,
  id: string,
  names: readonly string[],
): Promise<void> {
  const deps = simulation.depsOf(process);
  if (simulation.oracle.tasks.get(id)?.state === "in_doubt") return resolveTruly(simulation, deps, id);
  for (const name of names)
    await signal(
      deps,
      id,
      name,
      name.startsWith("approval:") ? { approved: true, by: "somebody" } : { sent: true },
    );
}
