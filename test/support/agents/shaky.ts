import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineAgent, Fatal, Retry } from "../../../shared/agent.ts";

/** Fails as it is told to, and writes down what it does: an account that Pawl has no part in. */
export default defineAgent({
  limits: { attempts: 5, lanes: 2 },
  async run({ id, input, attempt, signal }) {
    const { outcome, ms } = input as { outcome: "done" | "retry" | "fatal"; ms: number };
    const note = (what: string) =>
      appendFileSync(process.env.TEST_RECORD as string, `${JSON.stringify({ at: Date.now(), id, what })}\n`);
    note("start");
    await sleep(ms, undefined, { signal });
    if (outcome === "fatal") throw new Fatal("never");
    if (outcome === "retry" && attempt === 1) {
      note("retry");
      throw new Retry("not yet", 20);
    }
    note("end");
    return "done";
  },
});
