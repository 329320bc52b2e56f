import { isPawlError, messageOf } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import { type Pause, pauseOf } from "./pause.ts";

/** A pause, or its end, is heeded within so much time. One read each, however many lanes and tasks there are. */
const LOOK_EVERY = 5_000;
/** Sooner where the store did not answer: until it does nothing can be claimed anyway. */
const LOOK_AGAIN = 1_000;

/** Whether an agent is paused, as far as this runner knows. */
export interface PauseWatch {
  isPaused(): boolean;
  /** Called when it is paused, until the returned function is called. */
  onPause(listener: () => void): () => void;
  /** Resolves when it is not paused, or the signal aborts. */
  untilResumed(stop: AbortSignal): Promise<void>;
  close(): void;
}

/** For whoever takes nothing. */
export const NEVER_PAUSED: PauseWatch = {
  isPaused: () => false,
  onPause: () => () => {},
  untilResumed: async () => {},
  close: () => {},
};

/**
 * Looks once before anything is pulled, and then beside the work: no task waits for it. What it does not know yet it learns
 * at its next look; what has been delivered by then is run.
 */
export async function watchPause(deps: Deps, agent: string): Promise<PauseWatch> {
  const closed = new AbortController();
  const listeners = new Set<() => void>();
  let paused: Pause | undefined;
  let isTold = false;
  const look = async (): Promise<boolean> => {
    try {
      const now = await pauseOf(deps.store, agent);
      if (closed.signal.aborted) return true;
      const isChanged = (now === undefined) !== (paused === undefined);
      paused = now;
      if (!isChanged) return true;
      if (now) {
        const { at, by, why } = now;
        deps.log("warn", "agent.paused", { agent, since: new Date(at).toISOString(), by, why });
      } else deps.log("info", "agent.resumed", { agent });
      for (const listener of [...listeners]) listener();
      return true;
    } catch (error) {
      // It goes on as it was. That the store is away others say.
      if (isPawlError(error, "store_unavailable")) return false;
      if (!isTold) deps.log("warn", "pause.unread", { agent, reason: messageOf(error) });
      isTold = true;
      return true;
    }
  };
  let isSeen = await look();
  const go = async () => {
    while (!closed.signal.aborted) {
      await deps.clock.sleep(isSeen ? LOOK_EVERY : LOOK_AGAIN, closed.signal);
      if (!closed.signal.aborted) isSeen = await look();
    }
  };
  void go();
  return {
    isPaused: () => paused !== undefined,
    onPause: (listener) => {
      const heard = () => {
        if (paused) listener();
      };
      listeners.add(heard);
      return () => void listeners.delete(heard);
    },
    untilResumed: (stop) =>
      new Promise((resolve) => {
        const check = () => {
          if (paused && !stop.aborted && !closed.signal.aborted) return;
          listeners.delete(check);
          stop.removeEventListener("abort", check);
          resolve();
        };
        listeners.add(check);
        stop.addEventListener("abort", check);
        check();
      }),
    close: () => {
      closed.abort();
      for (const listener of [...listeners]) listener();
    },
  };
}
