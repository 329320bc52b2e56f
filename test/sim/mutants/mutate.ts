import { registerHooks } from "node:module";
import { mutantNamed } from "./guards.ts";

/** Loaded before everything else: the source of one file is not what it is on disk. */
const name = process.env.SIM_MUTANT;
if (name === undefined) throw new Error("SIM_MUTANT should name a mutant");
const { file, changes } = mutantNamed(name);
const url = new URL(`../../../shared/${file}`, import.meta.url).href;

registerHooks({
  load: (loaded, context, next) => {
    const result = next(loaded, context);
    if (loaded !== url) return result;
    return { ...result, source: mutated(String(result.source), name, changes) };
  },
});

/** The source with each change made. A change that no longer fits its source is an error, not a mutant that survives. */
export function mutated(
  source: string,
  mutant: string,
  list: readonly (readonly [string, string])[],
): string {
  return list.reduce((text, [find, replace]) => {
    const places = text.split(find).length - 1;
    if (places !== 1)
      throw new Error(`Mutant ${mutant}: ${JSON.stringify(find)} is there ${places} times, not once`);
    return text.replace(find, () => replace);
  }, source);
}
