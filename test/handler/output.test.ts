import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import { refusalOf } from "../../infra/local/messages/refusals.ts";
import { sampleOf } from "../../infra/local/stand-in/sample.ts";
import { defineAgent, type LlmRequest, tool } from "../../shared/agent.ts";
import { asks, everyCrash, type ModelScript, runAgent } from "../../shared/testing.ts";
import type { JsonObject } from "../../shared/values/json.ts";

const MODEL = "claude-sonnet-5-5";
const City = z.object({
  name: z.string().min(2),
  people: z
    .number()
    .int()
    .transform((n) => n * 1_000),
});
const wrong = '{"name": "B", "people": 1.5}';
const right = '{"name": "Bern", "people": 134}';

const asking = (model: ModelScript, more: Partial<LlmRequest<typeof City>> = {}, limits = {}) => {
  const agent = defineAgent({
    limits,
    run: async ({ llm }) => {
      const answer = await llm("ask", {
        model: MODEL,
        prompt: "Which?",
        maxTokens: 100,
        output: City,
        ...more,
      });
      expectTypeOf(answer.output).toEqualTypeOf<{ name: string; people: number }>();
      return answer.output;
    },
  });
  return { agent, options: { model }, run: () => runAgent(agent, {}, { model }) };
};

test("the answer is held to the schema, checked, and what the schema makes of it is the output", async () => {
  const { requests, result } = await asking([right]).run();
  expect(result).toEqual({ name: "Bern", people: 134_000 });
  const sent = requests[0] as JsonObject;
  expect(sent.output_config).toEqual({
    format: {
      type: "json_schema",
      schema: {
        type: "object",
        properties: {
          // What the API can't hold it to is told in words.
          name: { type: "string", description: expect.stringContaining("minLength") },
          people: { type: "integer", description: expect.any(String) },
        },
        required: ["name", "people"],
        additionalProperties: false,
      },
    },
  });
  expect(refusalOf(sent, [], {})).toBeUndefined();
});

test("other settings of the output are kept beside it", async () => {
  const { requests } = await asking([right], { parameters: { output_config: { effort: "low" } } }).run();
  expect(requests[0]?.output_config).toMatchObject({ effort: "low", format: { type: "json_schema" } });
});

describe("an answer that does not fit", () => {
  test("is asked for again with the reason, each time in a turn that is journaled and paid", async () => {
    const { agent, options, run } = asking(["no JSON", wrong, right]);
    const { result, requests, spent } = await run();
    expect(result).toEqual({ name: "Bern", people: 134_000 });
    const reasons = (requests[2] as unknown as { messages: JsonObject[] }).messages.filter(
      ({ role }) => role === "user",
    );
    expect(reasons.map(({ content }) => content)).toEqual([
      "Which?",
      expect.stringMatching(/does not fit the schema\. it is no JSON/),
      expect.stringMatching(/name: .*people: .*Answer again/s),
    ]);
    expect(spent.turns).toBe(3);
    for (const { crash, run } of await everyCrash(agent, {}, options)) {
      expect(run.result, crash).toEqual({ name: "Bern", people: 134_000 });
      expect(run.requests.length, crash).toBeLessThanOrEqual(4);
    }
  });

  test("is given up by name after outputTries", async () => {
    const { state, error, requests } = await asking([wrong, wrong, right], { outputTries: 2 }).run();
    expect({ state, error }).toMatchObject({
      state: "failed",
      error: { code: "model_output", message: expect.stringMatching(/ask: none of 2 answers.*name: /s) },
    });
    expect(requests).toHaveLength(2);
  });

  test("is not asked for again where the budget ends", async () => {
    const costly = {
      content: [{ type: "text", text: wrong }],
      usage: { input_tokens: 2_000, output_tokens: 100 },
    };
    const { error, requests } = await asking([costly, right], {}, { budgetUsd: 0.008 }).run();
    expect([error?.code, requests.length]).toEqual(["budget_exceeded", 1]);
  });

  test("which a schema decides that takes its time does too", async () => {
    const Slow = z.object({ name: z.string().refine(async (name) => name === "Rom", "not Rome") });
    const agent = defineAgent({
      run: async ({ llm }) => (await llm("ask", { model: MODEL, prompt: "?", output: Slow })).output,
    });
    const run = await runAgent(agent, {}, { model: ['{"name": "Bern"}', '{"name": "Rom"}'] });
    expect([run.result, run.requests.length]).toEqual([{ name: "Rom" }, 2]);
  });
});

test("tools are used before it answers, and a strict one is held to its schema", async () => {
  const look = tool({
    name: "look",
    description: "Looks",
    input: z.object({ at: z.string() }),
    readOnly: true,
    strict: true,
    run: ({ at }) => at,
  });
  const { result, requests } = await asking([asks(["look", { at: "map" }]), right], { tools: [look] }).run();
  expect(result).toMatchObject({ name: "Bern" });
  expect(requests[0]?.tools).toMatchObject([{ strict: true, input_schema: { additionalProperties: false } }]);
  expect(refusalOf(requests[0] as JsonObject, [], {})).toBeUndefined();
});

test("what can't be asked for is refused by name, before anything is asked", async () => {
  const cases: [Partial<LlmRequest<never>>, RegExp][] = [
    [{ output: { type: "object" } as never }, /output to be a Standard Schema/],
    [{ outputTries: 0 }, /outputTries to be a whole number from 1/],
    [{ onMaxTokens: "return" }, /half an answer fits no schema/],
    [{ output: z.map(z.string(), z.string()) as never }, /outputSchema: the schema of output can't/],
    [{ output: z.object({ any: z.any() }) as never }, /no model can be held to this schema/],
  ];
  for (const [more, message] of cases) {
    const { error, requests } = await asking([right], more as never).run();
    expect(error).toMatchObject({ code: "call_invalid", message: expect.stringMatching(message) });
    expect(requests).toHaveLength(0);
  }
});

test("the stand-in's answer fits", async () => {
  const { requests } = await asking([right]).run();
  const { format } = (requests[0] as JsonObject).output_config as { format: JsonObject };
  const told = JSON.stringify(sampleOf(format.schema));
  expect((await asking([told]).run()).state).toBe("completed");
});
