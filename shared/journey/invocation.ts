import type { Delivery } from "../ports/bus.ts";
import type { Deps, Invocation } from "./deps.ts";
import type { Outcome, Ran } from "./run.ts";

/** How long a model's turn may take: what an invocation must have left to begin one. */
const TURN = 300_000;
/** Of the longest invocation: no task may need more, or none could run it. */
const MOST = 2 / 3;

/** Cut off in a turn, an invocation leaves an answer that is paid for and lost. Undefined: there is time enough. */
export function lacksForTurn(invocation: Invocation | undefined): { readonly needs: number } | undefined {
  if (!invocation) return undefined;
  const needs = Math.min(TURN, invocation.longest * MOST);
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
  { invocation, settings }: Deps,
): Outcome {
  if (outcome.kind !== "handOff") return outcome;
  const more = invocation && !isFurther && outcome.needs === undefined;
  return {
    ...outcome,
    ...(more && { needs: Math.ceil(Math.min(2 * had, invocation.longest * MOST)) }),
    ...(deliveries > settings.maxDeliver / 2 && { renewed: true }),
  };
}
