import type { Message, MessageTokensCount } from "@anthropic-ai/sdk/resources/messages";
import { priceOf, prices } from "../../../shared/journal/prices.ts";
import type { Usage } from "../../../shared/journal/usage.ts";
import type { JsonObject } from "../../../shared/values/json.ts";
import { tokensOf, type World } from "./tokens.ts";

/** What the API bills for an answer, whoever hears it. Its sums are its own: only the table of prices is shared. */
export function billOf(model: string, usage: Usage): number {
  const price = priceOf(model, prices);
  if (!price) return 0;
  const hour = usage.cache_creation?.ephemeral_1h_input_tokens ?? 0;
  const minutes = (usage.cache_creation_input_tokens ?? 0) - hour;
  const read = usage.cache_read_input_tokens ?? 0;
  const prompt = usage.input_tokens + hour + minutes + read;
  const rates =
    usage.speed === "fast" && price.fast
      ? price.fast
      : price.long && prompt > price.long.over
        ? price.long
        : price;
  const dollars = (tokens: number, rate: number) => (tokens * rate) / 1_000_000;
  const tokens =
    dollars(usage.input_tokens, rates.input) +
    dollars(read, rates.input * price.cacheRead) +
    dollars(minutes, rates.input * 1.25) +
    dollars(hour, rates.input * 2) +
    dollars(usage.output_tokens, rates.output);
  const searches = (usage.server_tool_use?.web_search_requests ?? 0) / 100;
  return tokens * (usage.inference_geo === "us" ? 1.1 : 1) + searches;
}

/** What the API says of an answer. `content`: each tool on its side was used, and read with all that was there before. */
export function usageOf(
  body: JsonObject,
  content: readonly JsonObject[],
  world: World = {},
): Message["usage"] {
  const { resultTokens = 5_000 } = world;
  const uses = content.filter(({ type }) => type === "server_tool_use");
  const prompt = tokensOf(body, world);
  const window = priceOf(String(body.model), prices)?.window ?? Number.POSITIVE_INFINITY;
  const rounds = Array.from({ length: uses.length + 1 }, (_, round) =>
    Math.min(prompt + round * resultTokens, window),
  );
  const text = JSON.stringify(body);
  const read = rounds.reduce((total, one) => total + one, 0);
  const hour = text.includes('"ttl":"1h"') ? read : 0;
  const minutes = hour === 0 && text.includes('"cache_control"') ? read : 0;
  const used = (name: string) => uses.filter((use) => use.name === name).length;
  return {
    input_tokens: read - hour - minutes,
    output_tokens: Math.ceil(JSON.stringify(content).length / 4),
    output_tokens_details: null,
    cache_read_input_tokens: 0,
    cache_creation_input_tokens: hour + minutes,
    cache_creation: { ephemeral_5m_input_tokens: minutes, ephemeral_1h_input_tokens: hour },
    server_tool_use:
      uses.length > 0
        ? { web_search_requests: used("web_search"), web_fetch_requests: used("web_fetch") }
        : null,
    service_tier: "standard",
    inference_geo: typeof body.inference_geo === "string" ? body.inference_geo : "global",
    speed: body.speed === "fast" ? "fast" : "standard",
  };
}

/** What the counting endpoint answers. */
export function countOf(body: JsonObject, world: World = {}): MessageTokensCount {
  return { input_tokens: Math.round(tokensOf(body, world) * (1 - (world.countError ?? 0))) };
}
