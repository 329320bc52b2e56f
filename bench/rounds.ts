import type { Stage } from "./bench.ts";

type Sides<T> = Readonly<Record<string, () => Promise<T>>>;

/**
 * One side after the other, round by round: what else happens on the machine happens to all of them. A first round is not
 * counted where code that has never run would be what is measured.
 */
export async function interleaved<T>(
  stage: Stage,
  sides: Sides<T>,
  { isWarmedUp = false } = {},
): Promise<Record<string, T[]>> {
  const measured: Record<string, T[]> = Object.fromEntries(Object.keys(sides).map((name) => [name, []]));
  for (let round = isWarmedUp ? 1 : 0; round <= stage.rounds; round++) {
    for (const [name, side] of Object.entries(sides)) {
      stage.tell(round === 0 ? `${name}, to warm up` : `${name}, round ${round} of ${stage.rounds}`);
      const value = await unlessStopped(stage.stop, side());
      if (round > 0) measured[name]?.push(value);
    }
  }
  return measured;
}

/** Rejects at once when somebody stops the run: what is under way ends with the process. */
export async function unlessStopped<T>(stop: AbortSignal, work: Promise<T>): Promise<T> {
  work.catch(() => {});
  stop.throwIfAborted();
  const stopped = Promise.withResolvers<never>();
  const onAbort = () => stopped.reject(stop.reason);
  stop.addEventListener("abort", onAbort);
  try {
    return await Promise.race([work, stopped.promise]);
  } finally {
    stop.removeEventListener("abort", onAbort);
  }
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
}

/** Begun now: how long until it is asked, in milliseconds, by the clock and by this process's use of the processors. */
export function stopwatch(): () => { readonly ms: number; readonly cpu: number } {
  const [begun, before] = [performance.now(), process.cpuUsage()];
  return () => {
    const { user, system } = process.cpuUsage(before);
    return { ms: performance.now() - begun, cpu: (user + system) / 1_000 };
  };
}

/** So many in a second. */
export const rate = (count: number, ms: number) => (1_000 * count) / ms;

/** All of them, so many at once. */
export async function each(
  count: number,
  atOnce: number,
  one: (index: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < count) await one(next++);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, work));
}
