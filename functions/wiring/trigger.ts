import { messageOf } from "../../shared/errors/errors.ts";
import type { Log } from "../../shared/ports/log.ts";
import type { Config } from "./config.ts";
import type { SignIn } from "./sign-in.ts";

/** Long enough for a function to be started and to take the request; what it does then is not waited for. */
const SENT_WITHIN = 3_000;
/** A function that was called looks at its whole queue: to call it for each message would only cost. */
const PAUSE = 3_000;

export interface Triggers {
  /**
   * Tells an agent's function that there is something in its queue: at once, and then no more often than every few
   * seconds, the last time after the last message. A lost call costs a minute: its cron comes anyway.
   */
  trigger(agent: string): void;
  /** Sends what is still owed, for those whose timers may not fire any more. */
  hurry(): void;
  /** Nothing is owed, and every call is under way, or given up. */
  done(): Promise<void>;
}

export function triggers(
  { wakeUrl, runSecret }: Pick<Config, "wakeUrl" | "runSecret">,
  log: Log,
  signIn: SignIn,
  pause = PAUSE,
): Triggers {
  const calls = new Set<Promise<void>>();
  /** Agents that were called a moment ago, and whether there was something since. */
  const pauses = new Map<string, { owed: boolean; readonly over: ReturnType<typeof setTimeout> }>();

  const call = async (agent: string): Promise<void> => {
    try {
      const url = (wakeUrl as string).replaceAll("{agent}", agent);
      const identity = await signIn(url);
      const response = await fetch(url, {
        method: "POST",
        headers: { ...identity, authorization: `Bearer ${runSecret}`, prefer: "respond-async" },
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
  const send = (agent: string) => {
    const made = call(agent).finally(() => calls.delete(made));
    calls.add(made);
    pauses.set(agent, { owed: false, over: setTimeout(resume, pause, agent) });
  };
  /** The pause after a call is over. */
  const resume = (agent: string) => {
    const { owed, over } = pauses.get(agent) ?? { owed: false };
    clearTimeout(over);
    pauses.delete(agent);
    if (owed) send(agent);
  };
  const hurry = () => {
    for (const [agent, { owed }] of [...pauses]) if (owed) resume(agent);
  };
  return {
    trigger: (agent) => {
      if (wakeUrl === undefined || runSecret === undefined) return;
      const called = pauses.get(agent);
      if (called) called.owed = true;
      else send(agent);
    },
    hurry,
    done: async () => {
      hurry();
      for (const { over } of pauses.values()) clearTimeout(over);
      pauses.clear();
      await Promise.all(calls);
    },
  };
}
