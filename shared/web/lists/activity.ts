import type { Millis, Task } from "../../task/document.ts";
import { isFinal } from "../../task/table.ts";

/** How far back an agent's page looks, and in how many parts. */
export const SPANS = {
  "1h": { title: "the last hour", length: 3_600_000, parts: 12 },
  "24h": { title: "the last 24 hours", length: 86_400_000, parts: 12 },
  "7d": { title: "the last 7 days", length: 7 * 86_400_000, parts: 7 },
} as const;
export type SpanName = keyof typeof SPANS;

export interface Activity {
  /** Parts of the time, the oldest first, as charts take them. Those that were not looked at have no figures. */
  readonly parts: readonly { readonly name: string; readonly figures: Readonly<Record<string, number>> }[];
  readonly ended: number;
  readonly failed: number;
  readonly usd: number;
  /** From submit to completion. */
  readonly p50?: number;
  readonly p95?: number;
  /** Dead letters by their code, the most frequent first. */
  readonly reasons: readonly (readonly [code: string, count: number])[];
}

/**
 * What tasks did, by the time of their end. `tasks` are all that changed since `seenFrom`, which is later than the span's
 * beginning where there are too many to look at.
 */
export function activityOf(
  tasks: readonly Task[],
  name: SpanName,
  { now, seenFrom }: { now: Millis; seenFrom: Millis },
): Activity {
  const { length, parts } = SPANS[name];
  const size = length / parts;
  // Of whole hours and days, the last one under way.
  const end = Math.ceil(now / size) * size;
  const ended = tasks.filter(isFinal).map((task) => ({ task, at: endOf(task) }));
  const within = ended.filter(({ at }) => at >= end - length);
  const times = (some: typeof ended) =>
    some
      .filter(({ task }) => task.state === "completed")
      .map(({ task, at }) => at - task.createdAt)
      .sort((a, b) => a - b);
  const failed = within.filter(({ task }) => task.state === "failed");
  const whole = times(within);
  return {
    parts: Array.from({ length: parts }, (_, i) => {
      const from = end - length + i * size;
      const some = within.filter(({ at }) => at >= from && at < from + size);
      const minutes = (Math.min(now, from + size) - from) / 60_000;
      const label = new Date(from).toISOString();
      return {
        name: name === "7d" ? label.slice(5, 10) : label.slice(11, 16),
        figures: from + size <= seenFrom ? {} : figuresOf(some, minutes, times(some)),
      };
    }),
    ended: within.length,
    failed: failed.length,
    usd: usdOf(within),
    ...(whole.length > 0 && { p50: percentileOf(whole, 0.5), p95: percentileOf(whole, 0.95) }),
    reasons: countedReasons(failed.map(({ task }) => task)),
  };
}

type Ended = readonly { readonly task: Task }[];
const usdOf = (some: Ended) => some.reduce((sum, { task }) => sum + task.spent.usd, 0);

function figuresOf(some: Ended, minutes: number, times: readonly number[]): Record<string, number> {
  return {
    perMinute: some.length / Math.max(minutes, 1),
    failed: some.filter(({ task }) => task.state === "failed").length,
    usd: usdOf(some),
    ...(times.length > 0 && { p95: percentileOf(times, 0.95) }),
  };
}

const percentileOf = (sorted: readonly number[], share: number): number =>
  sorted[Math.ceil(share * sorted.length) - 1] as number;

/** When it came into the state it is in: later writes of a task that is over only count what came to it. */
function endOf({ history, updatedAt }: Task): Millis {
  return history.findLast(({ state }, i) => state !== history[i - 1]?.state)?.at ?? updatedAt;
}

function countedReasons(failed: readonly Task[]): [string, number][] {
  const by = Map.groupBy(failed, (task) => (task.state === "failed" ? task.error.code : ""));
  return [...by].map(([code, some]): [string, number] => [code, some.length]).sort((a, b) => b[1] - a[1]);
}
