import { defineAgent } from "../../../shared/agent.ts";
import { errand, runErrand } from "./lib/errand.ts";

/** Does what a drill has it do. */
export default defineAgent({
  input: errand,
  limits: { attempts: 5, backoff: { first: "500ms", longest: "2s" } },
  run: runErrand,
});
