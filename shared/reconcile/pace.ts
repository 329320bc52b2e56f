import { isPawlError } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import type { TaskStore } from "../ports/store.ts";
import { retry } from "../retry/retry.ts";

/** How far one call of a reconciliation may go. */
export interface Pace {
  /** With a store that is counted, and asked again where it did not answer. */
  readonly deps: Deps;
  readonly stop: AbortSignal;
  /** How often the store may be asked, about. */
  readonly mostCalls: number;
  /** Nothing new is begun any more: told to stop, or the store was asked as often as an invocation may. */
  isOver(): boolean;
}

/** What may be asked twice. Heads are not among them: whoever reads a journal counts the tries. */
const REPEATABLE: ReadonlySet<string> = new Set<keyof TaskStore>([
  "get",
  "getMany",
  "list",
  "position",
  "changes",
  "getPart",
  "putPart",
  "getRecord",
  "getText",
  "putText",
]);

export function paceOf(deps: Deps, stop: AbortSignal, mostCalls = Number.POSITIVE_INFINITY): Pace {
  let calls = 0;
  const counted = Object.entries(deps.store).map(([name, value]: [string, unknown]) => {
    if (typeof value !== "function") return [name, value];
    const work = value as (...args: unknown[]) => Promise<unknown>;
    const ask = (...args: unknown[]) => {
      calls++;
      return work(...args);
    };
    const again = (...args: unknown[]) => askAgain({ deps, stop }, () => ask(...args));
    return [name, REPEATABLE.has(name) ? again : ask];
  });
  const store = Object.fromEntries(counted) as TaskStore;
  return { deps: { ...deps, store }, stop, mostCalls, isOver: () => stop.aborted || calls >= mostCalls };
}

/** Store or broker can't be reached, or did not answer. */
export function isAway(error: unknown): boolean {
  return isPawlError(error, "store_unavailable") || isPawlError(error, "bus_unavailable");
}

/**
 * Asks what may be asked twice a few times, unless it is told to stop meanwhile. A store that is away for longer ends
 * the slice, not the reconciliation.
 */
export function askAgain<T>({ deps, stop }: Pick<Pace, "deps" | "stop">, ask: () => Promise<T>): Promise<T> {
  return retry(deps, "reconcile", ask, { mayPass: isAway, stop });
}

/** Where the next page begins, of a stage that is not over; without a cursor from the stage's beginning. */
export type Step = { readonly cursor?: string | undefined } | "over";
