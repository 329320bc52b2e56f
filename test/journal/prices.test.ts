import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { defineAgent, tool } from "../../shared/agent.ts";
import { usedBy } from "../../shared/journal/budget.ts";
import { PRICES_AS_OF, priceOf, prices, pricesFrom } from "../../shared/journal/prices.ts";
import { asks, everyCrash, runAgent } from "../../shared/testing.ts";

test("a model is found by its name, dated or not, and never by that of another", () => {
  expect(priceOf("claude-sonnet-5-5", prices)).toMatchObject({ input: 2, output: 10 });
  expect(priceOf("claude-opus-4-5-20251101", prices)).toMatchObject({ input: 5 });
  expect(priceOf("claude-opus-4-20250514", prices)).toMatchObject({ input: 15 });
  expect(priceOf("claude-fable-5-3", prices)).toBeUndefined();
  expect(priceOf("claude-sonnet-5-5x", prices)).toBeUndefined();
  expect(priceOf("gpt-1", prices)).toBeUndefined();
});

test("every model that the installed SDK names has a price and a window, and the table a date", () => {
  const types = readFileSync(
    join(import.meta.dirname, "../../node_modules/@anthropic-ai/sdk/resources/messages/messages.d.ts"),
    "utf8",
  );
  const [, union = ""] = /export type Model = ([^;]+);/.exec(types) ?? [];
  const named = [...union.matchAll(/'([\w-]+)'/g)].map((match) => match[1] as string);
  expect(named.length).toBeGreaterThan(15);
  const lacking = named.filter((name) => priceOf(name, prices)?.window === undefined);
  expect(lacking, "give these a row in shared/journal/prices.ts, and it a new date").toEqual([]);
  expect(PRICES_AS_OF).toMatch(/^\d{4}-\d{2}-\d{2}$/);
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
    '{"m": {"input": 1, "output": 1, "window": 0.5}}',
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
