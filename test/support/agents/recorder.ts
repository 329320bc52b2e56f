import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineAgent } from "../../../shared/agent.ts";

const LANES = Number(process.env.TEST_LANES ?? 1);
/** How long an execution in this process takes, where the input leaves it to whoever runs it. */
const MS = Number(process.env.TEST_MS ?? 0);

/** Writes its own start and end to the file that the test reads: an account of executions that Pawl has no part in. */
export default defineAgent({
  limits: { lanes: LANES },
  async run({ id, input, signal, attempt }) {
    const {
      ms = MS,
      every = ms,
      outcome = "done",
      deaf = false,
    } = input as { ms?: number; every?: number; outcome?: string; deaf?: boolean };
    const file = process.env.TEST_RECORD as string;
    const run = `${process.pid}-${Math.random().toString(36).slice(2, 8)}`;
    const note = (what: string, at = Date.now()) =>
      appendFileSync(file, `${JSON.stringify({ at, id, run, pid: process.pid, what })}\n`);
    /** Something done, as a well-behaved handler does it: never without a look at its signal first. */
    const act = (what: string) => {
      const at = Date.now();
      // A process that was frozen may wake up right here, long after its lease.
      if (!deaf) signal.throwIfAborted();
      note(what, at);
    };
    act("start");
    try {
      const over = Date.now() + ms;
      for (let left = ms; left > 0; left = over - Date.now()) {
        await sleep(Math.min(every, left), undefined, deaf ? {} : { signal });
        if (every < left) act("act");
      }
      while (existsSync(`${file}.hold`)) await sleep(10, undefined, { signal });
      act("end");
    } catch (error) {
      note("aborted");
      throw error;
    }
    if (outcome === "crash") process.exit(9);
    return { run, attempt };
  },
});
