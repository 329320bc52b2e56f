import type { Cost } from "./cost.ts";
import { type Price, type PriceTable, priceOf, type Rates } from "./prices.ts";

interface Tokens {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_read_input_tokens?: number | null;
  readonly cache_creation_input_tokens?: number | null;
  readonly cache_creation?: {
    readonly ephemeral_5m_input_tokens: number;
    readonly ephemeral_1h_input_tokens: number;
  } | null;
}

/** What a turn took, as the Messages API says it. */
export interface Usage extends Tokens {
  readonly server_tool_use?: { readonly web_search_requests?: number } | null;
  readonly inference_geo?: string | null;
  readonly speed?: string | null;
  /** Parts of a turn: those of other types than "message" are in none of the sums above. */
  readonly iterations?:
    | readonly (Tokens & { readonly type: string; readonly model?: string | null })[]
    | null;
}

export const CACHE_WRITE = { fiveMinutes: 1.25, oneHour: 2 };
/** Where inference is kept in the United States, all tokens cost more. */
export const UNITED_STATES = 1.1;
/** Ten dollars for a thousand searches. A fetch costs its tokens only. */
export const WEB_SEARCH_USD = 0.01;

/** Dollars by the table; of a model that it does not have, none. */
export function costOf(usage: Usage, model: string, table: PriceTable): Cost {
  const price = priceOf(model, table);
  const others = (usage.iterations ?? []).filter(
    ({ type }) => type === "compaction" || type === "advisor_message",
  );
  const parts = [
    { tokens: usage as Tokens, price },
    ...others.map((one) => ({ tokens: one, price: one.model ? priceOf(one.model, table) : price })),
  ];
  const factor = usage.inference_geo === "us" ? UNITED_STATES : 1;
  const searches = usage.server_tool_use?.web_search_requests ?? 0;
  const isFast = usage.speed === "fast";
  const usd = parts.reduce((sum, { tokens, price: of }) => sum + (of ? dollars(tokens, of, isFast) : 0), 0);
  return {
    turns: 1,
    inputTokens: parts.reduce((sum, { tokens }) => sum + inputOf(tokens), 0),
    outputTokens: parts.reduce((sum, { tokens }) => sum + tokens.output_tokens, 0),
    usd: usd * factor + (price ? searches * WEB_SEARCH_USD : 0),
  };
}

function inputOf(usage: Tokens): number {
  return usage.input_tokens + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0);
}

function dollars(usage: Tokens, price: Price, isFast: boolean): number {
  const { input, output } = ratesOf(price, inputOf(usage), isFast);
  const written = usage.cache_creation_input_tokens ?? 0;
  const hour = usage.cache_creation?.ephemeral_1h_input_tokens ?? 0;
  const weighted =
    usage.input_tokens +
    (usage.cache_read_input_tokens ?? 0) * price.cacheRead +
    (written - hour) * CACHE_WRITE.fiveMinutes +
    hour * CACHE_WRITE.oneHour;
  return (weighted * input + usage.output_tokens * output) / 1e6;
}

export function ratesOf(price: Price, inputTokens: number, isFast: boolean): Rates {
  if (isFast && price.fast) return price.fast;
  return price.long && inputTokens > price.long.over ? price.long : price;
}
