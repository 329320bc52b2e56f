/** What model turns took. Dollars by the price table that was in force. */
export interface Cost {
  readonly turns: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
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
