/** What model turns took. Dollars by the price table that was in force. */
export interface Cost {
  /** How many were asked. */
  readonly turns: number;
  /** What they read, cached or not. */
  readonly inputTokens: number;
  /** What they wrote. */
  readonly outputTokens: number;
  /** In dollars. */
  readonly usd: number;
}

export const NO_COST: Cost = { turns: 0, inputTokens: 0, outputTokens: 0, usd: 0 };

export function plus(a: Cost, b: Cost | undefined): Cost {
  if (!b) return a;
  return {
    turns: a.turns + b.turns,
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    usd: a.usd + b.usd,
  };
}

/** Never less than nothing: dollars are sums of many small fractions. */
export function minus(a: Cost, b: Cost | undefined): Cost {
  if (!b) return a;
  return {
    turns: Math.max(0, a.turns - b.turns),
    inputTokens: Math.max(0, a.inputTokens - b.inputTokens),
    outputTokens: Math.max(0, a.outputTokens - b.outputTokens),
    usd: Math.max(0, a.usd - b.usd),
  };
}
