import { appendFileSync } from "node:fs";
import { defineAgent } from "../../../shared/agent.ts";

/** Notes each step that it runs, in a file; may kill its own process after every one of them. */
export default defineAgent({
  async run({ id, input, step }) {
    const { steps = 10, dieAfterEach = false } = input as { steps?: number; dieAfterEach?: boolean };
    const file = process.env.TEST_RECORD as string;
    let sum = 0;
    for (let i = 0; i < steps; i++) {
      let isNew = false;
      sum += await step("count", () => {
        isNew = true;
        appendFileSync(
          file,
          `${JSON.stringify({ at: Date.now(), id, run: `s${i}`, pid: process.pid, what: "act" })}\n`,
        );
        return i;
      });
      if (isNew && dieAfterEach) process.kill(process.pid, "SIGKILL");
    }
    return { sum };
  },
});
