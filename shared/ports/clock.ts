/**
 * Time, as two clocks: the wall's, which steps when it is set and runs on while a machine sleeps, and one that only
 * ever grows but may stand still then. A lease is over when either of them says so.
 */
export interface Clock {
  now(): number;
  monotonic(): number;
  /** Ends early, without throwing, when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal?.addEventListener("abort", done);
    }),
};
