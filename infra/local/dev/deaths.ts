/** What dies as often as this in a minute is not started again. */
export const MOST_DEATHS = 5;
const MINUTE = 60_000;

/** Whether something has died too often: counts this time. */
export function deaths(now: () => number = Date.now): () => boolean {
  let times: number[] = [];
  return () => {
    times = [...times.filter((time) => time > now() - MINUTE), now()];
    return times.length >= MOST_DEATHS;
  };
}
