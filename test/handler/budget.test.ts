import fc from "fast-check";
import { expect, test } from "vitest";
import * as z from "zod";
import { defineAgent, type LlmRequest, tool } from "../../shared/agent.ts";
import { usedBy } from "../../shared/journal/budget.ts";
import { runWith } from "../../shared/testing/run-agent.ts";
import type { Json, JsonObject } from "../../shared/values/json.ts";
import { meteredModel, type Said } from "../support/model/metered.ts";

const MODELS = ["claude-haiku-5-5", "claude-haiku-4-5", "claude-sonnet-5-5", "claude-opus-5-5"] as const;
const URL_OF = "https://example.com/a.pdf";
const SEARCH = { type: "web_search_20260318", name: "web_search", max_uses: 3 };

const read = tool({
  name: "read",
  description: "Reads",
  input: z.object({}),
  readOnly: true,
  run: () => "r".repeat(900),
});

const part = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.string({ maxLength: 400 }).map((text): JsonObject => ({ type: "text", text: `.${text}` })),
  },
  fc.constant<JsonObject>({ type: "image", source: { type: "base64", data: "iVBO" } }),
  fc
    .integer({ min: 1, max: 90 })
    .map(
      (pages): JsonObject => ({ type: "document", source: { type: "base64", data: btoa(`pages ${pages}`) } }),
    ),
  fc.constant<JsonObject>({ type: "document", source: { type: "file", file_id: "file_1" } }),
  fc.constant<JsonObject>({ type: "document", source: { type: "url", url: URL_OF } }),
  fc.constant<JsonObject>({ type: "text", text: "kept", cache_control: { type: "ephemeral", ttl: "1h" } }),
);

const request = fc.record({
  model: fc.constantFrom(...MODELS),
  content: fc.array(part, { minLength: 1, maxLength: 3 }),
  maxTokens: fc.integer({ min: 20, max: 4_000 }),
  hasTools: fc.boolean(),
  parameters: fc.constantFrom<JsonObject>(
    {},
    {},
    { inference_geo: "us" },
    { speed: "fast" },
    { tools: [SEARCH] as unknown as Json },
    { cache_control: { type: "ephemeral" } },
  ),
});

const said = fc.record({
  fate: fc.constantFrom("heard", "heard", "heard", "lost", "busy") as fc.Arbitrary<Said["fate"]>,
  uses: fc.integer({ min: 0, max: 2 }),
  searches: fc.integer({ min: 0, max: 3 }),
  length: fc.constantFrom(0.1, 0.6, 1),
});

const conversation = fc.record({
  budgetUsd: fc.constantFrom(0.002, 0.02, 0.1, 0.5, 3, 40),
  requests: fc.array(request, { minLength: 1, maxLength: 3 }),
  says: fc.array(said, { minLength: 1, maxLength: 8 }),
  size: fc.constantFrom(300, 60_000, 150_000),
  resultTokens: fc.constantFrom(5_000, 300_000),
  countError: fc.constantFrom(-0.04, 0, 0.04),
  tokensPerByte: fc.constantFrom(0.2, 1),
  countFails: fc.array(fc.boolean(), { maxLength: 4 }),
  crashes: fc.array(
    fc.record({ when: fc.constantFrom("before", "after"), at: fc.integer({ min: 1, max: 25 }) }),
    {
      maxLength: 3,
    },
  ),
  failures: fc.integer({ min: 0, max: 2 }),
});

test("whatever is asked, lost, retried and killed: no more than the budget is on the API's own bill", async () => {
  const seen = { spent: 0, exceeded: 0, counted: 0, lost: 0, completed: 0 };
  await fc.assert(
    fc.asyncProperty(conversation, async (given) => {
      const { budgetUsd, requests, says, countError, tokensPerByte, countFails, crashes, failures } = given;
      let asked = 0;
      const say = (body: JsonObject): Said => {
        const at = says[asked++ % says.length] as (typeof says)[number];
        const tools = (body.tools ?? []) as JsonObject[];
        const id = `${asked}`;
        const searches = tools.some(({ type }) => type === SEARCH.type) ? at.searches : 0;
        const uses = asked < 12 && tools.some(({ name }) => name === "read") ? at.uses : 0;
        return {
          fate: at.fate,
          length: at.length,
          stopReason: uses > 0 ? "tool_use" : "end_turn",
          content: [
            ...Array.from({ length: searches }, () => ({
              type: "server_tool_use",
              name: "web_search",
              id: `s${id}`,
            })),
            ...Array.from({ length: uses }, (_, i) => ({
              type: "tool_use",
              name: "read",
              id: `u${id}-${i}`,
              input: {},
            })),
            { type: "text", text: "so" },
          ],
        };
      };
      let failing = 0;
      const { size, resultTokens } = given;
      const before = { sizes: { [URL_OF]: 100, file_1: size }, countError, tokensPerByte, resultTokens };
      // What is behind a URL may have grown by the time that it is read.
      const world = { ...before, sizes: { [URL_OF]: size * 6, file_1: size } };
      const model = meteredModel(say, world, before, () => countFails[failing++] ?? false);
      const agent = defineAgent({
        limits: { budgetUsd, attempts: 3 },
        run: async ({ llm, attempt }) => {
          for (const [i, one] of requests.entries()) {
            const { content, maxTokens, hasTools, parameters } = one;
            const messages = [{ role: "user", content }] as unknown as LlmRequest["messages"];
            await llm(`ask ${i}`, {
              model: one.model,
              messages: messages as readonly Json[],
              maxTokens,
              parameters,
              ...(hasTools && { tools: [read] }),
            });
          }
          if (attempt <= failures) throw new Error("again");
        },
      });
      const run = await runWith(agent, {}, {}, model, crashes as never);
      expect(model.bill(), JSON.stringify(run.error)).toBeLessThanOrEqual(budgetUsd + 1e-9);
      // The journal knows of every dollar that is on the bill.
      expect(usedBy(run.journal).usd).toBeGreaterThanOrEqual(model.bill() - 1e-9);
      seen.spent += model.bill() > 0 ? 1 : 0;
      seen.counted += model.counts() > 0 ? 1 : 0;
      seen.lost += usedBy(run.journal).usd > run.spent.usd + 1e-9 ? 1 : 0;
      seen.exceeded += run.state === "failed" && run.error?.code === "budget_exceeded" ? 1 : 0;
      seen.completed += run.state === "completed" ? 1 : 0;
    }),
    { numRuns: Number(process.env.PAWL_TEST_RUNS ?? 120) },
  );
  // It was about something.
  for (const [what, runs] of Object.entries(seen)) expect(runs, what).toBeGreaterThan(5);
});
