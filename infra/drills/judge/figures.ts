import type { Settings } from "../../../shared/settings/settings.ts";
import { redeliveryHorizon } from "../../../shared/settings/settings.ts";
import type { Task } from "../../../shared/task/document.ts";
import type { Deed } from "../outside/acts.ts";
import type { Evidence } from "./evidence.ts";

/** What a drill of deduplication is asked for: is the record of finished work there for longer than its message may come? */
export interface Figures {
  /** As the server has it: how long a silent runner's message stays with it. */
  readonly ackWaitMs: number;
  /** How long after its last delivery a message may come again, at most. */
  readonly horizonMs: number;
  /** How long the documents of finished tasks are kept, the shortest and the longest. None where no task ended. */
  readonly recordsMs?: readonly [shortest: number, longest: number];
  readonly duplicates: Duplicates;
  /** Executions beyond one a task. */
  readonly restarts: number;
  /** From the last sign of an execution that was cut off to the start of the next. */
  readonly recoveryMs?: number;
}

export interface Duplicates {
  /** By the layer that stopped them. */
  readonly window: number;
  readonly subject: number;
  readonly document: number;
  /** Completed work whose handler was begun again. */
  readonly executed: number;
}

export function figuresOf({ queues, stored, deeds }: Evidence, settings: Settings): Figures {
  const tasks = [...stored.values()].map(({ task }) => task);
  const kept = tasks.flatMap((task) => ("expiresAt" in task ? [task.expiresAt - task.updatedAt] : []));
  const recovered = [...stored.keys()].flatMap((id) => recovery(deeds.filter((one) => one.id === id)));
  const starts = deeds.filter(({ what }) => what === "start");
  return {
    ackWaitMs: Math.max(...queues.map(({ ackWaitMs }) => ackWaitMs)),
    horizonMs: redeliveryHorizon(settings),
    ...(kept.length > 0 && { recordsMs: [Math.min(...kept), Math.max(...kept)] as const }),
    duplicates: duplicatesOf(tasks, starts),
    restarts: starts.length - new Set(starts.map(({ id }) => id)).size,
    ...(recovered.length > 0 && { recoveryMs: Math.max(...recovered) }),
  };
}

function duplicatesOf(tasks: readonly Task[], starts: readonly Deed[]): Duplicates {
  const sum = (of: (task: Task) => number) => tasks.reduce((all, task) => all + of(task), 0);
  const stopped = (layer: "window" | "subject" | "document") =>
    sum(({ publishDuplicates }) => publishDuplicates[layer] ?? 0);
  const settled = sum((task) => task.settled.filter(({ outcome }) => outcome === "duplicate").length);
  const executed = sum((task) => {
    const completed = task.history.find(({ event }) => event === "complete")?.at ?? Number.POSITIVE_INFINITY;
    return starts.filter(({ id, at }) => id === task.id && at > completed).length;
  });
  return {
    window: stopped("window"),
    subject: stopped("subject"),
    document: stopped("document") + settled + sum(({ redeliveriesSkipped }) => redeliveriesSkipped),
    executed,
  };
}

function recovery(deeds: readonly Deed[]): number[] {
  const runs = [...Map.groupBy(deeds, ({ run }) => run).values()];
  return runs.slice(1).flatMap((next, i) => {
    const before = runs[i] as Deed[];
    const isEnded = before.some(({ what }) => what === "end");
    return isEnded ? [] : [Math.max(0, (next[0] as Deed).at - (before.at(-1) as Deed).at)];
  });
}
