import { PawlError } from "../errors/errors.ts";
import type { Cost } from "./cost.ts";

/** Dollars per million tokens. Cache reads and writes are shares of the input's price. */
export interface Price {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  /** For prompts of more tokens than this, other prices hold. */
  readonly long?: { readonly over: number; readonly input: number; readonly output: number };
}

/**
 * The date that the newest source of this table gives. It was put together from copies of Anthropic's page, those of the
 * 5.5 models and of Sonnet 5 from a third party's, and not compared with the page itself: do that before you rely on a
 * budget to the cent. PAWL_PRICES overrides and adds.
 */
export const PRICES_AS_OF = "2026-10-10";
const CACHE_WRITE = { fiveMinutes: 1.25, oneHour: 2 };

/** The longest name that a model's begins with counts, so dated versions find theirs. */
export const prices: Readonly<Record<string, Price>> = {
  "claude-fable-5": { input: 10, output: 50, cacheRead: 0.1 },
  "claude-fable-5-1": { input: 10, output: 50, cacheRead: 0.025 },
  "claude-mythos-5": { input: 10, output: 50, cacheRead: 0.1 },
  "claude-mythos-5-1": { input: 10, output: 50, cacheRead: 0.025 },
  "claude-opus-5-5": { input: 4, output: 20, cacheRead: 0.05 },
  "claude-opus-5": { input: 5, output: 25, cacheRead: 0.1 },
  "claude-opus-4": { input: 15, output: 75, cacheRead: 0.1 },
  "claude-opus-4-5": { input: 5, output: 25, cacheRead: 0.1 },
  "claude-opus-4-6": { input: 5, output: 25, cacheRead: 0.1 },
  "claude-opus-4-7": { input: 5, output: 25, cacheRead: 0.1 },
  "claude-opus-4-8": { input: 5, output: 25, cacheRead: 0.1 },
  "claude-sonnet-5-5": { input: 2, output: 10, cacheRead: 0.05 },
  "claude-sonnet-5": { input: 2, output: 10, cacheRead: 0.1 },
  "claude-sonnet-4": { input: 3, output: 15, cacheRead: 0.1 },
  "claude-haiku-5-5": {
    input: 0.1,
    output: 0.5,
    cacheRead: 0.1,
    long: { over: 100_000, input: 0.5, output: 2.5 },
  },
  "claude-haiku-4-5": { input: 1, output: 5, cacheRead: 0.1 },
};

export type PriceTable = Readonly<Record<string, Price>>;

export function priceOf(model: string, table: PriceTable): Price | undefined {
  const name = Object.keys(table)
    .filter((one) => model === one || model.startsWith(`${one}-`))
    .toSorted((a, b) => b.length - a.length)[0];
  // claude-fable-5-2 is another model than claude-fable-5; a date is none.
  const rest = name === undefined ? "" : model.slice(name.length);
  return name !== undefined && /^(-\d{8}|-latest)?$/.test(rest) ? table[name] : undefined;
}

/** Tokens as the Messages API counts them. */
export interface Usage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_read_input_tokens?: number | null;
  readonly cache_creation_input_tokens?: number | null;
  readonly cache_creation?: {
    readonly ephemeral_5m_input_tokens: number;
    readonly ephemeral_1h_input_tokens: number;
  } | null;
}

export function costOf(usage: Usage, price: Price | undefined): Cost {
  const read = usage.cache_read_input_tokens ?? 0;
  const written = usage.cache_creation_input_tokens ?? 0;
  const hour = usage.cache_creation?.ephemeral_1h_input_tokens ?? 0;
  const inputTokens = usage.input_tokens + read + written;
  const outputTokens = usage.output_tokens;
  if (!price) return { turns: 1, inputTokens, outputTokens, usd: 0 };
  const { input, output } = tier(price, inputTokens);
  const weighted =
    usage.input_tokens +
    read * price.cacheRead +
    (written - hour) * CACHE_WRITE.fiveMinutes +
    hour * CACHE_WRITE.oneHour;
  return { turns: 1, inputTokens, outputTokens, usd: (weighted * input + outputTokens * output) / 1e6 };
}

function tier(price: Price, inputTokens: number): { input: number; output: number } {
  return price.long && inputTokens > price.long.over ? price.long : price;
}

/** What the API adds to a request by itself: the prompt that explains tools, and framing. */
const OVERHEAD = 2_000;

/**
 * The most that a request can cost. No tokenizer makes more tokens than there are bytes, so the bound holds without
 * asking anyone; it is far from what a text costs, but the answer's share, `maxTokens`, is exact.
 */
export function worstCase(
  requestBytes: number,
  maxTokens: number,
  caches: boolean,
  price: Price | undefined,
): Cost {
  const inputTokens = requestBytes + OVERHEAD;
  if (!price) return { turns: 1, inputTokens, outputTokens: maxTokens, usd: 0 };
  const { input, output } = tier(price, inputTokens);
  const factor = caches ? CACHE_WRITE.oneHour : 1;
  const usd = (inputTokens * input * factor + maxTokens * output) / 1e6;
  return { turns: 1, inputTokens, outputTokens: maxTokens, usd };
}

/** PAWL_PRICES: {"model": {"input": 3, "output": 15}}. */
export function pricesFrom(text: string | undefined): PriceTable {
  if (!text) return prices;
  try {
    const given = JSON.parse(text) as Record<string, Partial<Price>>;
    const own = Object.entries(given).map(([model, { input, output, cacheRead = 0.1 }]) => {
      if (typeof input !== "number" || typeof output !== "number" || !(input >= 0 && output >= 0))
        throw new Error(model);
      return [model, { input, output, cacheRead }] as const;
    });
    return { ...prices, ...Object.fromEntries(own) };
  } catch {
    throw new PawlError(
      "setting_invalid",
      'PAWL_PRICES should be JSON such as {"claude-sonnet-5-5": {"input": 2, "output": 10}}, in dollars per million tokens',
    );
  }
}
