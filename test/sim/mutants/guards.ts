import type { Plan } from "../plan/plan.ts";
import { doing } from "./doing.ts";
import { ending } from "./ending.ts";
import { holding } from "./holding.ts";
import { planned } from "./planned.ts";

/** A guard of the product, and how it is switched off. */
export interface Mutant {
  readonly name: string;
  /** What the guard does, for the table. */
  readonly guard: string;
  /** Under shared/. */
  readonly file: string;
  /** What is replaced by what. */
  readonly changes: readonly (readonly [find: string, replace: string])[];
  /** Whether `npm test` checks it too: those that die quickly. */
  readonly isQuick?: boolean;
  /** A plan that misses it, where seeds seldom or never do. */
  readonly plan?: Plan;
}

export const mutants: readonly Mutant[] = [...holding, ...doing, ...ending, ...planned];

export function mutantNamed(name: string): Mutant {
  const found = mutants.find((one) => one.name === name);
  if (!found) throw new Error(`There is no mutant ${JSON.stringify(name)}`);
  return found;
}
