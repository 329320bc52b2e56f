const DAY = 86_400_000;
const NEEDED = 60_000;

/** For tests of what is said of today (UTC): in the last minute of a day they wait for the next one to begin. */
export async function clearOfMidnight(now = Date.now()): Promise<void> {
  const left = DAY - (now % DAY);
  if (left < NEEDED) await new Promise((resolve) => setTimeout(resolve, left + 10));
}
