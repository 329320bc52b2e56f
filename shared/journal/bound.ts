import { PawlError } from "../errors/errors.ts";
import { byteLength, isJsonObject, type Json, type JsonObject } from "../values/json.ts";
import type { Cost } from "./cost.ts";
import type { Price } from "./prices.ts";
import { CACHE_WRITE, ratesOf, UNITED_STATES, WEB_SEARCH_USD } from "./usage.ts";

/** What a request shows of what it will cost. */
export interface Shape {
  /** No tokenizer makes more tokens of a text than it has bytes. */
  readonly bytes: number;
  /** Parts that cost more than their bytes show, and that the API can count: images, PDFs, files, thinking. */
  readonly countable: readonly string[];
  /** Parts that nobody can count beforehand: they may fill the model's whole window. */
  readonly open: readonly string[];
  /** Parts whose cost has no bound at all, each with what to do. */
  readonly boundless: readonly string[];
  /** How often the model may read all of it in one turn: tools on its own side bring it back. */
  readonly rounds: number;
  readonly fees: number;
}

/** What the API documents as the longest loop of tools on its side: then the turn pauses. */
const SERVER_ROUNDS = 10;
/** What the API adds to a request by itself: the prompt that explains tools, and framing. */
const OVERHEAD = 2_000;
/** The count is an estimate, says the API, and may be off by a little. */
const COUNT_MARGIN = 1.05;

/** Parameters that change neither how much is read nor what it costs, or are looked at below. */
const PLAIN = new Set([
  ...["model", "max_tokens", "messages", "system", "tools", "tool_choice", "thinking", "stop_sequences"],
  ...["metadata", "output_config", "output_format", "cache_control", "diagnostics", "inference_geo"],
  ...["service_tier", "speed", "temperature", "top_p", "top_k", "user_profile_id", "workspace_id", "betas"],
  ...["mcp_servers", "context_management", "stream"],
]);

const BOUNDLESS: Readonly<Record<string, string>> = {
  container:
    "container with skills: its hours are billed, and no answer says how many. Run the code in a tool of your own",
  fallbacks: "fallbacks: another model may answer, at another price. Catch the error and ask that model",
};

/** The one that searches and fetches ran in costs nothing; the tool that runs code in it is refused by itself. */
const isWebContainer = (name: string, value: Json | undefined) =>
  name === "container" && typeof value === "string";

export function shapeOf(request: JsonObject): Shape {
  const countable = new Set<string>();
  const open = new Set<string>();
  const boundless = Object.keys(request)
    .filter((name) => !PLAIN.has(name) && request[name] != null && !isWebContainer(name, request[name]))
    .map((name) => BOUNDLESS[name] ?? `${name}: what it costs is not known. Leave it out`);
  let rounds = 1;
  let fees = 0;
  for (const tool of listOf(request.tools)) {
    const type = String(tool.type ?? "custom");
    if (type === "custom") continue;
    if (/^(bash|text_editor|memory|computer|browser)_/.test(type)) countable.add(`tool ${type}`);
    else if (/^(web_search|web_fetch|tool_search_tool|mcp_toolset)/.test(type)) {
      rounds = SERVER_ROUNDS;
      open.add(`tool ${type}`);
      if (!type.startsWith("web_search_")) continue;
      if (Number.isInteger(tool.max_uses)) fees += Number(tool.max_uses) * WEB_SEARCH_USD;
      else boundless.push(`tool ${type}: each search has a fee. Give it max_uses`);
    } else boundless.push(`tool ${type}: what it costs is not known. Give the model a tool of your own`);
  }
  if (listOf(request.mcp_servers).length > 0 || request.context_management != null) {
    rounds = SERVER_ROUNDS;
    open.add(request.context_management == null ? "mcp_servers" : "context_management");
  }
  const note = (content: Json | undefined): void => {
    for (const block of listOf(content)) noteBlock(block, note, countable, open);
  };
  note(request.system);
  for (const message of listOf(request.messages)) note(message.content);
  const bytes = byteLength(JSON.stringify(request));
  return { bytes, countable: [...countable], open: [...open], boundless, rounds, fees };
}

function noteBlock(
  block: JsonObject,
  note: (content: Json | undefined) => void,
  countable: Set<string>,
  open: Set<string>,
): void {
  const type = String(block.type);
  switch (type) {
    case "text":
    case "tool_use":
      return;
    case "tool_result":
    case "search_result":
      note(block.content);
      return;
    case "thinking":
    case "redacted_thinking":
      countable.add("thinking");
      return;
    case "image":
    case "document": {
      const { type: kind, content } = isJsonObject(block.source ?? null) ? (block.source as JsonObject) : {};
      if (kind === "text") return;
      if (kind === "content") note(content);
      else if (kind === "base64" || kind === "file") countable.add(`${type} by ${kind}`);
      else open.add(`${type} by ${String(kind)}`);
      return;
    }
    default:
      open.add(type);
  }
}

/**
 * The most that a request can cost: by its bytes, by what the API has `counted`, or by the model's window, where it says
 * less. The answer's share, `max_tokens`, is exact.
 */
export function mostOf(shape: Shape, request: JsonObject, price: Price | undefined, counted?: number): Cost {
  const { bytes, countable, open, rounds, fees } = shape;
  const window = price?.window ?? Number.POSITIVE_INFINITY;
  const shown = bytes + OVERHEAD;
  const isShown = countable.length === 0 && open.length === 0;
  const known = counted === undefined ? (isShown ? shown : window) : counted * COUNT_MARGIN + OVERHEAD;
  // Without a window it is shown as it is: a price is known, and a budget is not, or the turn is refused.
  const most = open.length > 0 ? window : Math.min(isShown ? Math.min(known, shown) : known, window);
  const inputTokens = Math.ceil(Number.isFinite(most) ? most : shown) * rounds;
  const outputTokens = Math.max(0, Number(request.max_tokens)) * rounds;
  if (!price) return { turns: 1, inputTokens, outputTokens, usd: 0 };
  const { input, output } = ratesOf(price, inputTokens / rounds, request.speed === "fast");
  const where = request.inference_geo === "global" ? 1 : UNITED_STATES;
  const usd =
    ((inputTokens * input * cacheFactor(request, rounds) + outputTokens * output) * where) / 1e6 + fees;
  return { turns: 1, inputTokens, outputTokens, usd };
}

function cacheFactor(request: JsonObject, rounds: number): number {
  const text = JSON.stringify(request);
  if (text.includes('"ttl":"1h"')) return CACHE_WRITE.oneHour;
  return rounds > 1 || text.includes('"cache_control"') ? CACHE_WRITE.fiveMinutes : 1;
}

/** Refused beforehand: a budget that might be overspent is none. */
export function checkBounded(shape: Shape, request: JsonObject, price: Price): void {
  const reasons = [...shape.boundless];
  if (request.speed === "fast" && !price.fast)
    reasons.push(`speed "fast": its price for ${String(request.model)} is not known. Leave it out`);
  if (price.window === undefined && shape.open.length > 0)
    reasons.push(`${shape.open.join(", ")}: the model's window bounds it. Give "window" in PAWL_PRICES`);
  if (reasons.length > 0)
    throw new PawlError(
      "budget_unbounded",
      `The agent has a budget, and nobody can say what this request may cost at most. ${reasons.join("; ")}`,
    );
}

function listOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}
