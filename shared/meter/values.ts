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
export function countsIn(text: string, agent?: string): CounterValues {
  try {
    const all = Object.entries(JSON.parse(text) as Record<string, unknown>);
    const isCount = (one: [string, unknown]): one is [string, number] =>
      SERIES.test(one[0]) && typeof one[1] === "number" && Number.isFinite(one[1]) && one[1] >= 0;
    const counts = Object.fromEntries(all.filter(isCount));
    return agent === undefined ? counts : withOwnDollars(counts, agent);
  } catch {
    return {};
  }
}

/**
 * What an agent says of itself only: of dollars its own, and owners' up to as many on the same day, as its tasks spend them.
 * Or it could use up any other's quota.
 */
function withOwnDollars(counts: CounterValues, agent: string): CounterValues {
  const all = Object.entries(counts).map(([name, count]) => ({ name, count, ...spentIn(name) }));
  const believed = all.filter(({ by, whose }) => by !== "agent" || whose === agent);
  const sums = new Map<string, number>();
  for (const { day, by, count } of believed)
    sums.set(`${day} ${by}`, (sums.get(`${day} ${by}`) ?? 0) + count);
  const share = (day: string | undefined) => {
    const [own, owners] = [sums.get(`${day} agent`) ?? 0, sums.get(`${day} owner`) ?? 0];
    return owners > own ? own / owners : 1;
  };
  return Object.fromEntries(
    believed.map(({ name, count, day, by }) => [name, by === "owner" ? count * share(day) : count]),
  );
}

/** What `spentName` is made of; nothing of another name. */
function spentIn(name: string): { readonly day?: string; readonly by?: string; readonly whose?: string } {
  if (!name.startsWith(SPENT)) return {};
  const [day = "", by = "", whose = ""] = name.slice(SPENT.length).split(" ");
  return { day, by, whose };
}
