import { registerHooks } from "node:module";
import type { Mutant } from "./guards.ts";
import { mutated } from "./mutated.ts";

/** From now on the source of one file is not what it is on disk. */
export function mutateAtLoad({ name, file, changes }: Mutant): void {
  const url = new URL(`../../../shared/${file}`, import.meta.url).href;
  registerHooks({
    load: (loaded, context, next) => {
      const result = next(loaded, context);
      if (loaded !== url) return result;
      return { ...result, source: mutated(String(result.source), name, changes) };
    },
  });
}
