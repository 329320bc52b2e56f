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

/** Beyond this a timer fires at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: async (ms, signal) => {
    for (let left = ms; left > 0 && !signal?.aborted; left -= LONGEST_TIMER) {
      await timer(Math.min(left, LONGEST_TIMER), signal);
    }
  },
};

function timer(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timeout);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timeout = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });
}
