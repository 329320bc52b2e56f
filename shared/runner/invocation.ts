import type { Delivery } from "../ports/bus.ts";
import type { Deps, Invocation } from "../ports/deps.ts";
import type { Task, TaskFailure } from "../task/document.ts";
import { successionWait } from "../task/succession.ts";
import type { Recorded, Word } from "./ack.ts";
import type { Holding } from "./execution.ts";
import type { Ran } from "./outcome.ts";

/** How long a model's turn may take: what an invocation must have left to begin one. */
const TURN = 300_000;
/** Of the longest invocation: no task may need more, or none could run it. What it can't wait for in one it waits for in several. */
const MOST = 2 / 3;

function atMost({ longest }: Invocation, ms: number): number {
  return Math.ceil(Math.min(ms, longest * MOST));
}

/** Cut off in a turn, an invocation leaves an answer that is paid for and lost. Undefined: there is time enough. */
export function lacksForTurn(invocation: Invocation | undefined): { readonly needs: number } | undefined {
  if (!invocation) return undefined;
  const needs = atMost(invocation, TURN);
  return invocation.left() < needs ? { needs } : undefined;
}

/**
 * A hand-off with what the next runner has to know. One that got no further in its time asks for more of it, so that
 * invocations that are too short don't pass the task on to each other for ever; where none has more, the attempt has
 * failed. One whose message was delivered very often asks for another message: the server counts deliveries, and gives
 * up on the message in the end.
 */
export function handedOn({ deps, delivery, agent, held }: Holding, ran: Ran, had: number): Ran {
  const { outcome, isFurther } = ran;
  const { invocation, settings } = deps;
  if (outcome.kind !== "handOff") return ran;
  const isStuck = invocation && !isFurther && outcome.waited === undefined;
  const { needs = 0 } = held.task;
  const asks = isStuck && (outcome.needs ?? atMost(invocation, 2 * Math.max(had, needs)));
  if (asks && needs >= asks)
    return { ...ran, outcome: { kind: "retry", error: tooLong(had), ended: outcome.ended } };
  // On a strict lane another message would come behind those that it is to go before.
  const isMany = delivery.deliveries > settings.maxDeliver / 2 && agent.limits.order !== "strict";
  return {
    ...ran,
    outcome: { ...outcome, ...(asks && { needs: asks }), ...(isMany && { renewed: true }) },
  };
}

function tooLong(had: number): TaskFailure {
  return {
    code: "task_timeout",
    message: `The handler stored nothing new in ${Math.round(had)} ms, and has too little time for what comes next in any invocation of this function. Divide its work into steps, or raise PAWL_TIME_LIMIT`,
    phase: "handler",
  };
}

/**
 * What an invocation has no time for it does not claim: it would hand it off unstarted, and the next one would wait
 * from the beginning. The message stays for one that has more time. `left`: how much it had when the message came.
 */
export function lackOfTime(
  deps: Deps,
  task: Task,
  { deliveries }: Delivery,
  left: number | undefined,
): Recorded | undefined {
  const { invocation, settings, clock, runner } = deps;
  if (!invocation || left === undefined) return undefined;
  const wait = successionWait(task, { now: clock.now(), by: runner });
  const needed = atMost(invocation, Math.max(wait > 0 ? wait + settings.requestTimeout : 0, task.needs ?? 0));
  if (left >= needed) return undefined;
  // To be put back at once is a delivery too, and they are counted.
  const isMany = deliveries > settings.maxDeliver / 2;
  const word: Word = isMany ? { kind: "silent" } : { kind: "nak", delayMs: 0 };
  return { word, as: "too-short", detail: `it needs ${needed} ms, and ${Math.round(left)} ms are left` };
}
