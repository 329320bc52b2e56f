import { type Search, search } from "../search.ts";
import type { Mutant } from "./guards.ts";

/** How a mutant fared. */
export interface Hunted {
  readonly mutant: Mutant;
  readonly seeds: number;
  readonly seconds: number;
  /** The promise that was broken, and by which seed; none where the mutant survived. */
  readonly killedBy?: { readonly seed: number; readonly promise: string; readonly message: string };
}

/** Plays seeds against a mutant, or its own plan, until one breaks a promise that holds with the guard. */
export async function hunt(
  mutant: Mutant,
  given: Pick<Search, "from" | "seeds" | "ms" | "jobs">,
): Promise<Hunted> {
  const imports = [new URL("mutate.ts", import.meta.url).href];
  const { plan } = mutant;
  const own = plan && { plan, from: plan.seed, seeds: 1 };
  const { from } = { ...given, ...own };
  const found = await search({ ...given, ...own, imports, env: { SIM_MUTANT: mutant.name } });
  const { broken, seconds } = found;
  const seeds = broken ? broken.seed - from + 1 : found.seeds;
  if (broken && (await search({ ...own, from: broken.seed, seeds: 1, jobs: 1 })).broken)
    throw new Error(
      plan
        ? `The plan of ${mutant.name} breaks a promise with the guard too`
        : `Seed ${broken.seed} breaks a promise with the guard too: npm run sim -- --seed ${broken.seed}`,
    );
  return { mutant, seeds, seconds, ...(broken && { killedBy: broken }) };
}
