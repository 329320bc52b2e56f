import type { Log } from "../shared/ports/log.ts";
import { messageOf } from "../shared/task/errors.ts";
import type { Config } from "./config.ts";

/** Long enough for a function to be started and to take the request; what it does then is not waited for. */
const SENT_WITHIN = 3_000;

export interface Waker {
  /** Tells an agent's function that there is something in its queue. A lost call costs a minute: its cron comes anyway. */
  wake(agent: string): void;
  /** Every call is under way, or given up. */
  done(): Promise<void>;
}

export function waker({ wakeUrl, runSecret }: Pick<Config, "wakeUrl" | "runSecret">, log: Log): Waker {
  const calls = new Set<Promise<void>>();
  const call = async (agent: string): Promise<void> => {
    if (wakeUrl === undefined || runSecret === undefined) return;
    try {
      const response = await fetch(wakeUrl.replaceAll("{agent}", agent), {
        method: "POST",
        headers: { authorization: `Bearer ${runSecret}`, prefer: "respond-async" },
        signal: AbortSignal.timeout(SENT_WITHIN),
      });
      await response.body?.cancel();
      if (!response.ok) log("warn", "wake.refused", { agent, status: response.status });
    } catch (error) {
      // A function that answers only when it is done has been woken all the same.
      const isSent = error instanceof Error && error.name === "TimeoutError";
      if (!isSent) log("warn", "wake.failed", { agent, reason: messageOf(error) });
    }
  };
  return {
    wake: (agent) => {
      const made = call(agent).finally(() => calls.delete(made));
      calls.add(made);
    },
    done: async () => {
      await Promise.all(calls);
    },
  };
}
