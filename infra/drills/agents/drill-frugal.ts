import { defineAgent } from "../../../shared/agent.ts";
import { BUDGET, errand, runErrand } from "./lib/errand.ts";

/** The same, with a budget for one turn of its model and not for two. */
export default defineAgent({ input: errand, limits: { budgetUsd: BUDGET }, run: runErrand });
