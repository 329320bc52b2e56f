import { describe, expect, test } from "vitest";
import { checkBounded, mostOf, shapeOf } from "../../shared/journal/bound.ts";
import { type Price, priceOf, prices } from "../../shared/journal/prices.ts";
import { costOf } from "../../shared/journal/usage.ts";
import type { Json, JsonObject } from "../../shared/values/json.ts";

const model = "claude-sonnet-5-5";
const price = priceOf(model, prices) as Price;
const asking = (content: Json, more: JsonObject = {}): JsonObject => ({
  model,
  max_tokens: 100,
  messages: [{ role: "user", content }],
  ...more,
});
const by = (type: string, source: JsonObject) => asking([{ type, source }]);

test("cached tokens have their own prices, and long prompts, fast answers, places and searches too", () => {
  const table = { ...prices, tiered: { input: 3, output: 15, cacheRead: 0.1 } };
  const usage = {
    input_tokens: 1_000,
    output_tokens: 100,
    cache_read_input_tokens: 10_000,
    cache_creation_input_tokens: 3_000,
    cache_creation: { ephemeral_5m_input_tokens: 2_000, ephemeral_1h_input_tokens: 1_000 },
  };
  expect(costOf(usage, "tiered", table)).toMatchObject({
    inputTokens: 14_000,
    usd: ((1_000 + 10_000 * 0.1 + 2_000 * 1.25 + 1_000 * 2) * 3 + 100 * 15) / 1e6,
  });
  const usd = (more: object, of = "claude-haiku-5-5") =>
    costOf({ input_tokens: 100_000, output_tokens: 0, ...more }, of, prices).usd;
  expect(usd({})).toBeCloseTo(0.01);
  expect(usd({ input_tokens: 100_001 })).toBeCloseTo(0.05);
  expect(usd({ inference_geo: "us" })).toBeCloseTo(0.011);
  expect(usd({ server_tool_use: { web_search_requests: 3, web_fetch_requests: 9 } })).toBeCloseTo(0.04);
  expect(usd({ speed: "fast" }, "claude-opus-5-5")).toBeCloseTo(0.8);
  const compaction = { type: "compaction", input_tokens: 50_000, output_tokens: 1_000 };
  const message = { type: "message", input_tokens: 100_000, output_tokens: 0 };
  // 10,500 of them: of a compaction nothing is in the sums, of a message everything.
  expect(usd({ iterations: [message, compaction] })).toBeCloseTo(0.01 + 0.005 + 0.0005);
  expect(costOf({ input_tokens: 9, output_tokens: 9 }, "nobody's", prices).usd).toBe(0);
});

test("a text has no more tokens than bytes, whatever is in it", () => {
  const text = "你好 👩‍👩‍👧 hello ".repeat(20);
  const bytes = new TextEncoder().encode(text).length;
  const shape = shapeOf(asking(text));
  expect(shape).toMatchObject({ countable: [], open: [], boundless: [], rounds: 1, fees: 0 });
  const most = mostOf(shape, asking(text), price);
  // Every byte a token, in the dearest place, the answer as long as it may be.
  const usage = { input_tokens: bytes, output_tokens: 100, inference_geo: "us" };
  expect(most.usd).toBeGreaterThan(costOf(usage, model, prices).usd);
  const cached = asking([{ type: "text", text, cache_control: { type: "ephemeral", ttl: "1h" } }]);
  const hour = { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: bytes };
  const written = { ...usage, input_tokens: 0, cache_creation_input_tokens: bytes, cache_creation: hour };
  expect(mostOf(shapeOf(cached), cached, price).usd).toBeGreaterThan(costOf(written, model, prices).usd);
  // No request is longer than the window, however many bytes it has.
  const long = asking("x".repeat(250_000));
  const small = priceOf("claude-haiku-4-5", prices);
  expect(mostOf(shapeOf(long), long, small).inputTokens).toBe(200_000);
});

describe("what the request does not show", () => {
  test.each<[string, JsonObject, "countable" | "open" | "shown"]>([
    ["an image", by("image", { type: "base64", data: "iVBO", media_type: "image/png" }), "countable"],
    ["a PDF", by("document", { type: "base64", data: "JVBE" }), "countable"],
    ["a file", by("document", { type: "file", file_id: "file_1" }), "countable"],
    ["a PDF by URL", by("document", { type: "url", url: "https://example.com/a.pdf" }), "open"],
    ["an image by URL", by("image", { type: "url", url: "https://example.com/a.png" }), "open"],
    ["a text document", by("document", { type: "text", data: "words" }), "shown"],
    [
      "an image in a tool's result",
      asking([{ type: "tool_result", content: [{ type: "image", source: { type: "base64", data: "a" } }] }]),
      "countable",
    ],
    ["thinking", asking([{ type: "thinking", thinking: "", signature: "s" }]), "countable"],
    ["a block of tomorrow", asking([{ type: "hologram" }]), "open"],
    ["an own tool", asking("?", { tools: [{ name: "a", input_schema: { type: "object" } }] }), "shown"],
    ["an editor", asking("?", { tools: [{ type: "text_editor_20250728", name: "e" }] }), "countable"],
    ["a fetch", asking("?", { tools: [{ type: "web_fetch_20260318", name: "f" }] }), "open"],
    ["MCP servers", asking("?", { mcp_servers: [{ url: "https://example.com" }] }), "open"],
  ])("%s is %j", (_, request, how) => {
    const { countable, open, boundless } = shapeOf(request);
    expect([countable.length > 0, open.length > 0, boundless]).toEqual([
      how === "countable",
      how === "open",
      [],
    ]);
    const most = mostOf(shapeOf(request), request, price);
    if (how !== "shown") expect(most.inputTokens).toBeGreaterThanOrEqual(1_000_000);
    const counted = mostOf(shapeOf(request), request, price, 500);
    if (how === "countable") expect(counted.inputTokens).toBeLessThan(3_000);
    if (how === "open") expect(counted).toEqual(most);
  });

  test("tools on the API's side read everything again, and a search has a fee", () => {
    const search = { type: "web_search_20260318", name: "web_search", max_uses: 5 };
    const request = asking("?", { tools: [search] });
    const most = mostOf(shapeOf(request), request, price);
    expect(most).toMatchObject({ inputTokens: 10_000_000, outputTokens: 1_000 });
    expect(most.usd).toBeCloseTo((10_000_000 * 2 * 1.25 + 1_000 * 10) * 1.1e-6 + 0.05);
  });

  test.each<[string, JsonObject, RegExp]>([
    [
      "a container",
      { container: { skills: [] } },
      /container with skills: its hours are billed.*tool of your own/,
    ],
    ["code", { tools: [{ type: "code_execution_20260521", name: "c" }] }, /tool code_execution_20260521/],
    ["a search without an end", { tools: [{ type: "web_search_20250305" }] }, /Give it max_uses/],
    ["an adviser", { tools: [{ type: "advisor_20260301" }] }, /tool advisor_20260301/],
    ["other models", { fallbacks: { models: ["x"] } }, /another model may answer/],
    ["a parameter of tomorrow", { horoscope: true }, /horoscope: what it costs is not known/],
    ["speed where it has no price", { speed: "fast" }, /speed "fast": its price for claude-sonnet-5-5/],
  ])("%s has no bound, and is refused under a budget", (_, more, why) => {
    const request = asking("?", more);
    expect(() => checkBounded(shapeOf(request), request, price)).toThrow(why);
  });

  test("a price without a window bounds only what is shown", () => {
    const { window: _, ...without } = price;
    const open = by("image", { type: "url", url: "https://example.com/a.png" });
    expect(() => checkBounded(shapeOf(open), open, without)).toThrow(/Give "window" in PAWL_PRICES/);
    expect(() => checkBounded(shapeOf(asking("?")), asking("?"), without)).not.toThrow();
  });
});
