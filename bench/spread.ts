import type { Figure, Limit } from "./bench.ts";

/** The middle of all rounds, and how far apart they were. */
export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

/** A figure as it is printed and kept. */
export interface Row {
  readonly bench: string;
  readonly what: string;
  readonly unit: Figure["unit"];
  readonly rounds: number;
  readonly pawl: Spread;
  readonly against?: Spread & { readonly name: string };
  /** The median of the rounds' own ratios: Pawl's figure by that of the same round. */
  readonly ratio?: Spread;
  readonly required?: string;
  /** Undefined where nothing is required. */
  readonly isHeld?: boolean;
}

export function rowOf(bench: string, { what, unit, pawl, against, required, bound }: Figure): Row {
  const ratios = against?.values.map((value, round) => (pawl[round] as number) / value);
  const ratio = ratios && spreadOf(ratios);
  const own = spreadOf(pawl);
  const [limit, value] = required ? [required, ratio?.median] : [bound, own.median];
  return {
    bench,
    what,
    unit,
    rounds: pawl.length,
    pawl: own,
    ...(against && { against: { name: against.name, ...spreadOf(against.values) } }),
    ...(ratio && { ratio }),
    ...(limit &&
      value !== undefined && { required: said(limit, bound && unit), isHeld: keeps(value, limit) }),
  };
}

export function spreadOf(values: readonly number[]): Spread {
  const [least = Number.NaN] = values.toSorted((a, b) => a - b);
  return { median: percentile(values, 50), least, most: Math.max(...values) };
}

/** The middle one, or the mean of the two in the middle; of other percentiles the nearest. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  if (percent === 50 && sorted.length % 2 === 0)
    return ((sorted[half - 1] as number) + (sorted[half] as number)) / 2;
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] as number;
}

export const median = (values: readonly number[]) => percentile(values, 50);

const keeps = (value: number, limit: Limit) =>
  "least" in limit ? value >= limit.least : value <= limit.most;

function said(limit: Limit, unit: string | undefined): string {
  const [sign, value] = "least" in limit ? [">=", limit.least] : ["<=", limit.most];
  return unit ? `${sign} ${value} ${unit}` : `${sign} ${value} ×`;
}
