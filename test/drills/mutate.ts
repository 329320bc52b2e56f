import { mutateAtLoad } from "../sim/mutants/at-load.ts";
import { guardNamed } from "./guards.ts";

/** Loaded before everything else, in the drill's own process and in those that it starts. */
mutateAtLoad(guardNamed(process.env.DRILL_MUTANT ?? ""));
