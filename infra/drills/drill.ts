import type { Facts } from "./facts.ts";
import type { Stage } from "./stage/stage.ts";

/** One fault, done for real, and what is to come of it. */
export interface Drill extends Facts {
  /** Sets up, does the fault, waits for what is to come of it. It is judged by others. */
  run(stage: Stage): Promise<void>;
}
