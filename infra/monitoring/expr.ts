import { type Counter, counterLabels, type LabelsOf } from "../../shared/meter/counters.ts";

/** Prometheus's own, of where a sample was scraped: two installations are two jobs. */
const JOB = "job";

type Which<C extends Counter> = { readonly [L in keyof LabelsOf<C>]?: string };

/** A counter's series: of each label, what a pattern says. */
export function counted<C extends Counter>(counter: C, which: Which<C> = {}): string {
  const matchers = Object.entries(which).map(([label, pattern]) => `${label}=~"${pattern as string}"`);
  return `pawl_${counter}_total${matchers.length > 0 ? `{${matchers.join(",")}}` : ""}`;
}

const isByAgent = (counter: Counter): boolean =>
  (counterLabels[counter] as readonly string[]).includes("agent");

const sumBy = (counter: Counter): string => `sum by (${isByAgent(counter) ? `${JOB}, agent` : JOB})`;

/**
 * How much was added in the time. `increase()` would miss the first: a counter that was never counted is not there, and what
 * it begins with would be no increase. Where it was not there and the API was, it was nothing; and it never starts again
 * from nothing, as it is kept in the store.
 */
export function added<C extends Counter>(counter: C, time: string, which: Which<C> = {}): string {
  const series = counted(counter, which);
  const sum = sumBy(counter);
  const nothing = `0 * ${sum} (pawl_queue_pending offset ${time})`;
  return `${sum} (${series}) - (${sum} (${series} offset ${time}) or ${nothing})`;
}

/** How much of one there was for each of the other. */
export function ratio(of: string, to: string): string {
  return `(${of}) / (${to} > 0)`;
}
