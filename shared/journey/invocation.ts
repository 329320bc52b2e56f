import type { Agent } from "../agent.ts";
import type { Delivery } from "../ports/bus.ts";
import type { Deps, Invocation } from "./deps.ts";
import type { Outcome, Ran } from "./run.ts";

/** How long a model's turn may take: what an invocation must have left to begin one. */
const TURN = 300_000;
/** Of the longest invocation: no task may need more, or none could run it. What it can't wait for in one it waits for in several. */
const MOST = 2 / 3;

export function atMost({ longest }: Invocation, ms: number): number {
  return Math.min(ms, longest * MOST);
}

/** Cut off in a turn, an invocation leaves an answer that is paid for and lost. Undefined: there is time enough. */
export function lacksForTurn(invocation: Invocation | undefined): { readonly needs: number } | undefined {
  if (!invocation) return undefined;
  const needs = atMost(invocation, TURN);
  return invocation.left() < needs ? { needs } : undefined;
}

/**
 * A hand-off with what the next runner has to know. One that got no further in its time asks for more of it, so that
 * invocations that are too short don't pass the task on to each other for ever. One whose message was delivered very
 * often asks for another message: the server counts deliveries, and gives up on the message in the end.
 */
export function handedOn(
  { outcome, isFurther }: Pick<Ran, "outcome" | "isFurther">,
  had: number,
  { deliveries }: Pick<Delivery, "deliveries">,
  { limits }: Agent,
  { invocation, settings }: Deps,
): Outcome {
  if (outcome.kind !== "handOff") return outcome;
  const isStuck = invocation && !isFurther && outcome.needs === undefined && outcome.waited === undefined;
  // On a strict lane another message would come behind those that it is to go before.
  const isMany = deliveries > settings.maxDeliver / 2 && limits.order !== "strict";
  return {
    ...outcome,
    ...(isStuck && { needs: Math.ceil(atMost(invocation, 2 * had)) }),
    ...(isMany && { renewed: true }),
  };
}
