import type { Clock } from "../../../shared/ports/clock.ts";

/** Two looks that are further apart have a freeze between them: a handler at work looks every 25 ms. */
const GAP = 1_000;

/**
 * The clocks of a machine that sleeps whenever this process is frozen: the wall's runs on, the monotonic one stands still.
 * Nobody may set a machine's own clocks for a drill, so it is this process that is told so.
 */
export function sleepingClock(clock: Clock): Clock {
  let last = clock.monotonic();
  let slept = 0;
  const monotonic = () => {
    const now = clock.monotonic();
    if (now - last > GAP) slept += now - last;
    last = now;
    return now - slept;
  };
  return { ...clock, monotonic };
}
