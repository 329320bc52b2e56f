import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { defineAgent } from "../../../shared/agent.ts";

const LANES = Number(process.env.TEST_LANES ?? 1);

/** Writes its own start and end to the file that the test reads: an account of executions that Pawl has no part in. */
export default defineAgent({
  limits: { lanes: LANES },
  async run({ id, input, signal, attempt }) {
    const {
      ms = 0,
      outcome = "done",
      deaf = false,
    } = input as { ms?: number; outcome?: string; deaf?: boolean };
    const file = process.env.TEST_RECORD as string;
    const run = `${process.pid}-${Math.random().toString(36).slice(2, 8)}`;
    const note = (what: string) =>
      appendFileSync(file, `${JSON.stringify({ at: Date.now(), id, run, pid: process.pid, what })}\n`);
    signal.throwIfAborted();
    note("start");
    try {
      await sleep(ms, undefined, deaf ? {} : { signal });
      // A process that was frozen may wake up right here, long after its lease.
      if (!deaf) signal.throwIfAborted();
    } catch (error) {
      note("aborted");
      throw error;
    }
    note("end");
    if (outcome === "crash") process.exit(9);
    return { run, attempt };
  },
});
