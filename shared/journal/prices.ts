import { PawlError } from "../errors/errors.ts";

/** Dollars per million tokens. Cache reads and writes are shares of the input's price. */
export interface Price extends Rates {
  readonly cacheRead: number;
  /** For prompts of more tokens than this, other prices hold. */
  readonly long?: Rates & { readonly over: number };
  /** With `speed: "fast"`, where the model has it. */
  readonly fast?: Rates;
  /** The most tokens that a request may have, whatever it refers to. */
  readonly window?: number;
}

export interface Rates {
  readonly input: number;
  readonly output: number;
}

/**
 * The date that the newest source of this table gives. It was put together from copies of Anthropic's pages and of third
 * parties', and not compared with the page itself: do that before you rely on a budget to the cent. PAWL_PRICES overrides
 * and adds.
 */
export const PRICES_AS_OF = "2026-11-10";

const fable = { input: 10, output: 50, cacheRead: 0.1, window: 1_000_000 };
const opus = { input: 5, output: 25, cacheRead: 0.1, window: 1_000_000 };
const sonnet = { input: 3, output: 15, cacheRead: 0.1, window: 1_000_000 };
/** A million tokens are a beta of these two, and cost more from 200,000 on. */
const longSonnet = { ...sonnet, long: { over: 200_000, input: 6, output: 22.5 } };
const sonnet5 = { ...sonnet, input: 2, output: 10 };
const twice = ({ input, output }: Rates) => ({ input: 2 * input, output: 2 * output });
const sixfold = { input: 30, output: 150 };

/** The longest name that a model's begins with counts, so dated versions find theirs. */
export const prices: Readonly<Record<string, Price>> = {
  "claude-fable-5": fable,
  "claude-fable-5-1": { ...fable, cacheRead: 0.025 },
  "claude-fable-5-2": { ...fable, input: 8, output: 40, cacheRead: 0.025 },
  "claude-mythos-5": fable,
  "claude-mythos-5-1": { ...fable, cacheRead: 0.025 },
  "claude-mythos-5-2": { ...fable, input: 8, output: 40, cacheRead: 0.025 },
  "claude-mythos-preview": { ...fable, input: 25, output: 125 },
  "claude-opus-5-5": { ...opus, input: 4, output: 20, cacheRead: 0.05, fast: { input: 8, output: 40 } },
  "claude-opus-5": { ...opus, fast: twice(opus) },
  "claude-opus-4": { ...opus, input: 15, output: 75, window: 200_000 },
  "claude-opus-4-1": { ...opus, input: 15, output: 75, window: 200_000 },
  "claude-opus-4-5": { ...opus, window: 200_000 },
  "claude-opus-4-6": { ...opus, fast: sixfold },
  "claude-opus-4-7": { ...opus, fast: sixfold },
  "claude-opus-4-8": { ...opus, fast: twice(opus) },
  "claude-sonnet-5-5": { ...sonnet5, cacheRead: 0.05 },
  "claude-sonnet-5": sonnet5,
  "claude-sonnet-4": longSonnet,
  "claude-sonnet-4-5": longSonnet,
  "claude-sonnet-4-6": sonnet,
  "claude-haiku-5-5": {
    input: 0.1,
    output: 0.5,
    cacheRead: 0.1,
    long: { over: 100_000, input: 0.5, output: 2.5 },
    window: 1_000_000,
  },
  "claude-haiku-4-5": { input: 1, output: 5, cacheRead: 0.1, window: 200_000 },
};

export type PriceTable = Readonly<Record<string, Price>>;

export function priceOf(model: string, table: PriceTable): Price | undefined {
  const name = Object.keys(table)
    .filter((one) => model === one || model.startsWith(`${one}-`))
    .toSorted((a, b) => b.length - a.length)[0];
  // claude-fable-5-3 is another model than claude-fable-5; a date is none.
  const rest = name === undefined ? "" : model.slice(name.length);
  return name !== undefined && /^(-\d{8}|-latest)?$/.test(rest) ? table[name] : undefined;
}

/** PAWL_PRICES: {"model": {"input": 3, "output": 15}}. */
export function pricesFrom(text: string | undefined): PriceTable {
  if (!text) return prices;
  try {
    const given = JSON.parse(text) as Record<string, Partial<Price>>;
    const own = Object.entries(given).map(([model, given]) => {
      const { input, output, cacheRead = 0.1, window = prices[model]?.window } = given;
      if (![input, output, cacheRead].every(isDollars)) throw new Error(model);
      if (window !== undefined && !(Number.isInteger(window) && window > 0)) throw new Error(model);
      const price = { input, output, cacheRead, ...(window !== undefined && { window }) };
      return [model, price as Price] as const;
    });
    return { ...prices, ...Object.fromEntries(own) };
  } catch {
    throw new PawlError(
      "setting_invalid",
      'PAWL_PRICES should be JSON such as {"claude-sonnet-5-5": {"input": 2, "output": 10, "window": 1000000}}, in dollars per million tokens',
    );
  }
}

const isDollars = (value: unknown) => typeof value === "number" && value >= 0;
