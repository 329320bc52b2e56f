import { mutateAtLoad } from "./at-load.ts";
import { mutantNamed } from "./guards.ts";

/** Loaded before everything else. */
const name = process.env.SIM_MUTANT;
if (name === undefined) throw new Error("SIM_MUTANT should name a mutant");
mutateAtLoad(mutantNamed(name));
