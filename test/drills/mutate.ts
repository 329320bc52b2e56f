import { mutateAtLoad } from "../sim/mutants/at-load.ts";
import { mutantNamed } from "../sim/mutants/guards.ts";

/** Loaded before everything else, in the drill's own process and in those that it starts. */
mutateAtLoad(mutantNamed(process.env.DRILL_MUTANT ?? ""));
