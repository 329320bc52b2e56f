import { registerHooks } from "node:module";
import { mutantNamed } from "./guards.ts";
import { mutated } from "./mutated.ts";

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
