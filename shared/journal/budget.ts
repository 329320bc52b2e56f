import { PawlError } from "../errors/errors.ts";
import { type Cost, NO_COST, plus } from "./cost.ts";
import type { Entry } from "./entries.ts";

/** What a task may still spend. The journal is its book, so it is the same for every execution. */
export interface Budget {
  readonly isLimited: boolean;
  /** Whether that much is left. */
  fits(most: Cost): boolean;
  /** Sets the most that a call may cost aside. Throws `budget_exceeded` when that could be more than is left; `why`: it is so much. */
  reserve(most: Cost, why?: string): void;
  /** The call is over: what it really cost instead, or nothing. A call whose cost nobody knows stays reserved. */
  charge(most: Cost, cost: Cost | undefined): void;
}

export function budgetOf(entries: readonly Entry[], budgetUsd: number | undefined): Budget {
  let used = usedBy(entries).usd;
  const fits = (most: Cost) => budgetUsd === undefined || used + most.usd <= budgetUsd + 1e-9;
  return {
    isLimited: budgetUsd !== undefined,
    fits,
    reserve: (most, why = "") => {
      if (!fits(most)) {
        throw new PawlError(
          "budget_exceeded",
          `The next model call could cost $${dollars(most.usd)}${why}; of the budget of $${dollars(budgetUsd ?? 0)}, $${dollars(used)} is spent or set aside`,
        );
      }
      used += most.usd;
    },
    charge: (most, cost) => {
      used += (cost?.usd ?? 0) - most.usd;
    },
  };
}

const dollars = (usd: number) => usd.toFixed(usd < 0.1 ? 4 : 2);

/** Receipts at their cost, and tries that nobody knows the end of at the most they could have cost. */
export function usedBy(entries: readonly Entry[]): Cost {
  return plus(paid(entries), lost(entries));
}

function paid(entries: readonly Entry[]): Cost {
  return entries.reduce((sum, entry) => (entry.kind === "receipt" ? plus(sum, entry.cost) : sum), NO_COST);
}

/**
 * Turns that were asked for, after `since`, and whose answer was lost: by a crash, a cut stream, a lost lease. At most this
 * was re-spent.
 */
export function lost(entries: readonly Entry[], since = Number.NEGATIVE_INFINITY): Cost {
  const open = new Map<string, Cost>();
  let sum = NO_COST;
  for (const entry of entries) {
    const before = open.get(entry.key);
    if (entry.kind === "intent") {
      sum = plus(sum, before);
      const isAsked = (entry.when ?? 0) > since;
      if (entry.reserved) open.set(entry.key, isAsked ? entry.reserved : NO_COST);
    } else if (entry.kind === "receipt" || entry.kind === "undone") open.delete(entry.key);
  }
  return [...open.values()].reduce(plus, sum);
}
