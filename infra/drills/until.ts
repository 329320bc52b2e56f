import { isPawlError, messageOf } from "../../shared/errors/errors.ts";

/** How long anything is waited for: on a machine that has other work to do, all of it takes its time. */
const LONG = 90_000;
const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** An answer that came too late, or not at all, says nothing about what was asked. */
function isPassing(error: unknown): boolean {
  if (isPawlError(error, "store_unavailable") || isPawlError(error, "bus_unavailable")) return true;
  if (!(error instanceof Error)) return false;
  // The names that NATS, fetch and undici give to a time-out.
  return /Timeout/.test(error.name) || isPassing(error.cause);
}

/** Asks until it is so. The last resort where nothing signals: for what other processes write. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined | false>,
  ms = LONG,
): Promise<T> {
  const end = Date.now() + ms;
  for (let last: unknown, pause = 5; ; pause = Math.min(pause * 2, 50)) {
    try {
      const answer = await ask();
      if (answer !== undefined && answer !== false) return answer;
      last = undefined;
    } catch (error) {
      if (!isPassing(error)) throw error;
      last = error;
    }
    if (Date.now() > end) {
      const why = last === undefined ? "" : ` (at last: ${messageOf(last)})`;
      throw new Error(`not within ${ms} ms: ${what}${why}`, { cause: last });
    }
    await sleep(pause);
  }
}

/** The answer, whatever it is, of one who is asked again after a time-out. Only for what may be asked twice. */
export async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  const { answer } = await until("an answer", async () => ({ answer: await ask() }));
  return answer;
}
