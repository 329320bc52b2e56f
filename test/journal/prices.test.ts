import { expect, test } from "vitest";
import * as z from "zod";
import { defineAgent, tool } from "../../shared/agent.ts";
import { usedBy } from "../../shared/journal/budget.ts";
import { costOf, priceOf, prices, pricesFrom, worstCase } from "../../shared/journal/prices.ts";
import { asks, everyCrash, runAgent } from "../../shared/testing.ts";

test("a model is found by its name, dated or not, and never by that of another", () => {
  expect(priceOf("claude-sonnet-5-5", prices)).toMatchObject({ input: 2, output: 10 });
  expect(priceOf("claude-opus-4-5-20251101", prices)).toMatchObject({ input: 5 });
  expect(priceOf("claude-opus-4-20250514", prices)).toMatchObject({ input: 15 });
  expect(priceOf("claude-fable-5-2", prices)).toBeUndefined();
  expect(priceOf("claude-sonnet-5-5x", prices)).toBeUndefined();
  expect(priceOf("gpt-1", prices)).toBeUndefined();
});

test("cached tokens have their own prices, and long prompts too", () => {
  const sonnet = priceOf("claude-sonnet-4-5", {
    ...prices,
    "claude-sonnet-4-5": { input: 3, output: 15, cacheRead: 0.1 },
  });
  const usage = {
    input_tokens: 1_000,
    output_tokens: 100,
    cache_read_input_tokens: 10_000,
    cache_creation_input_tokens: 3_000,
    cache_creation: { ephemeral_5m_input_tokens: 2_000, ephemeral_1h_input_tokens: 1_000 },
  };
  expect(costOf(usage, sonnet)).toMatchObject({
    inputTokens: 14_000,
    usd: ((1_000 + 10_000 * 0.1 + 2_000 * 1.25 + 1_000 * 2) * 3 + 100 * 15) / 1e6,
  });
  const haiku = priceOf("claude-haiku-5-5", prices);
  expect(costOf({ input_tokens: 100_000, output_tokens: 0 }, haiku).usd).toBeCloseTo(0.01);
  expect(costOf({ input_tokens: 100_001, output_tokens: 0 }, haiku).usd).toBeCloseTo(0.05);
});

test("the worst case covers what any answer costs", () => {
  const price = priceOf("claude-sonnet-5-5", prices);
  const text = "你好 👩‍👩‍👧 hello ".repeat(100);
  const bytes = new TextEncoder().encode(text).length;
  const most = worstCase(bytes, 500, true, price);
  // Every byte a token, all of it written to the cache for an hour, the answer as long as it may be.
  const usage = { input_tokens: 0, output_tokens: 500, cache_creation_input_tokens: bytes };
  const hour = { cache_creation: { ephemeral_5m_input_tokens: 0, ephemeral_1h_input_tokens: bytes } };
  expect(most.usd).toBeGreaterThanOrEqual(costOf({ ...usage, ...hour }, price).usd);
});

test("PAWL_PRICES adds and overrides, and is refused when it is wrong", () => {
  const table = pricesFrom(
    '{"my-model": {"input": 1, "output": 2}, "claude-sonnet-5-5": {"input": 9, "output": 9}}',
  );
  expect(priceOf("my-model", table)).toEqual({ input: 1, output: 2, cacheRead: 0.1 });
  expect(priceOf("claude-sonnet-5-5", table)).toMatchObject({ input: 9 });
  expect(priceOf("claude-opus-5", table)).toMatchObject({ input: 5 });
  for (const wrong of [
    "{",
    '{"m": 3}',
    '{"m": {"input": -1, "output": 1}}',
    '{"m": {"input": "1", "output": 1}}',
  ])
    expect(() => pricesFrom(wrong)).toThrow(/PAWL_PRICES should be JSON/);
});

test("a budget holds through a crash at every point, and nothing is counted twice", async () => {
  const read = tool({
    name: "read",
    description: "Reads",
    input: z.object({ n: z.number() }),
    readOnly: true,
    run: ({ n }) => n,
  });
  const budgetUsd = 0.09;
  const agent = defineAgent({
    limits: { budgetUsd },
    run: async ({ llm }) =>
      (await llm("ask", { model: "claude-sonnet-5-5", prompt: "?", maxTokens: 1_000, tools: [read] })).text,
  });
  const usage = { input_tokens: 1_000, output_tokens: 1_000 };
  const script = () => ({
    ...(asks(["read", { n: 1 }], ["read", { n: 2 }]) as { content: [] }),
    stopReason: "tool_use",
    usage,
  });
  const clean = await runAgent(agent, {}, { model: script });
  const runs = await everyCrash(agent, {}, { model: script });
  expect(runs.length).toBeGreaterThan(20);
  for (const { crash, run } of runs) {
    expect(run, crash).toMatchObject({ state: "failed", error: { code: "budget_exceeded" } });
    expect(usedBy(run.journal).usd, crash).toBeLessThanOrEqual(budgetUsd);
    // An answer that was lost was paid for all the same: it leaves room for one less.
    expect(run.requests.length, crash).toBeLessThanOrEqual(clean.requests.length);
    // What was paid is the sum of the answers that were stored: 1.2 cents each.
    const stored = run.journal.filter((entry) => entry.kind === "receipt").length;
    expect(run.spent.usd, crash).toBeCloseTo(stored * 0.012, 10);
  }
});
