/** What is kept of counts in the store, by name. */
export type CounterValues = Readonly<Record<string, number>>;

/** No series of Prometheus begins like this. */
const SPENT = "spent ";
const DAY = 86_400_000;

export type SpentBy = "owner" | "agent";

const dayOf = (now: number) => new Date(now).toISOString().slice(0, 10);

/** Under which name the dollars of a day are added up. */
export const spentName = (now: number, by: SpentBy, whose: string) => `${SPENT}${dayOf(now)} ${by} ${whose}`;

/** Without the dollars of days that nobody asks for any more; clocks may be apart at midnight. */
export function withoutOldDays(counts: CounterValues, now: number): CounterValues {
  const kept = [dayOf(now - DAY), dayOf(now), dayOf(now + DAY)].map((day) => `${SPENT}${day} `);
  const isOld = (name: string) => name.startsWith(SPENT) && !kept.some((day) => name.startsWith(day));
  return Object.fromEntries(Object.entries(counts).filter(([name]) => !isOld(name)));
}

export function plus(a: CounterValues, b: CounterValues): CounterValues {
  const sum: Record<string, number> = { ...a };
  for (const [name, count] of Object.entries(b)) sum[name] = (sum[name] ?? 0) + count;
  return sum;
}

const SERIES = /^(pawl_[a-z_]+(\{[^\p{Cc}]*\})?|spent \d{4}-\d\d-\d\d (agent|owner) [\w.@-]+)$/u;

/** What a record of counts says. An agent's own may be of anybody who has its credentials: what is no count is left out. */
export function countsIn(text: string): CounterValues {
  try {
    const all = Object.entries(JSON.parse(text) as Record<string, unknown>);
    const isCount = (one: [string, unknown]): one is [string, number] =>
      SERIES.test(one[0]) && typeof one[1] === "number" && Number.isFinite(one[1]) && one[1] >= 0;
    return Object.fromEntries(all.filter(isCount));
  } catch {
    return {};
  }
}
