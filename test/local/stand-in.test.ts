import { expect, test } from "vitest";
import * as z from "zod";
import { sensibleAnswer } from "../../infra/local/stand-in/answer.ts";
import { sampleOf } from "../../infra/local/stand-in/sample.ts";
import { type StandInScript, startStandIn } from "../../infra/local/stand-in/stand-in.ts";
import { anthropic } from "../../shared/adapters/anthropic.ts";
import { asks } from "../../shared/testing.ts";
import type { JsonObject } from "../../shared/values/json.ts";

const user = (content: JsonObject[] | string) => ({ role: "user", content }) as JsonObject;
const base = { model: "m", max_tokens: 10 };

/** Schemas as people write them, each with what decides whether a sample fits. */
const schemas: Record<string, z.ZodType> = {
  texts: z.object({ name: z.string(), mail: z.email(), at: z.url(), day: z.iso.date(), id: z.uuid() }),
  bounds: z.object({
    short: z.string().max(3),
    long: z.string().min(40).max(50),
    count: z.int().min(5).max(9),
    price: z.number().gt(0).lt(1),
    even: z.number().multipleOf(7).min(8),
    below: z.number().max(-3),
  }),
  choices: z.object({
    kind: z.enum(["bug", "wish"]),
    is: z.literal(true),
    either: z.union([z.string(), z.number()]),
    maybe: z.string().nullable(),
    one: z.discriminatedUnion("type", [
      z.object({ type: z.literal("a"), n: z.number() }),
      z.object({ type: z.literal("b") }),
    ]),
  }),
  lists: z.object({ tags: z.array(z.string()).min(2).max(4), pair: z.tuple([z.string(), z.number()]) }),
  patterns: z.object({
    key: z.string().regex(/^[A-Z]+-\d+$/),
    version: z.string().regex(/^\d+\.\d+\.\d+$/),
  }),
  nested: z.object({ order: z.object({ lines: z.array(z.object({ sku: z.string(), n: z.int() })) }) }),
};

test.each(Object.entries(schemas))("a sample fits its schema, and is the same each time: %s", (_, schema) => {
  const json = z.toJSONSchema(schema) as JsonObject;
  const sample = sampleOf(json);
  expect(schema.safeParse(sample).error).toBeUndefined();
  expect(sampleOf(json)).toEqual(sample);
});

test("a schema that contains itself ends, by its reference and by its parts", () => {
  const tree = {
    $ref: "#/$defs/Node",
    $defs: {
      Base: { properties: { id: { type: "integer" } }, required: ["id"] },
      Node: {
        allOf: [
          { $ref: "#/$defs/Base" },
          { properties: { children: { type: "array", items: { $ref: "#/$defs/Node" } } } },
        ],
      },
    },
  } as unknown as JsonObject;
  expect(sampleOf(tree)).toMatchObject({ id: 1, children: [{ id: 1 }] });
});

test("offered tools it asks for the first, or the one it is told to use, then answers by the result", () => {
  const tool = (name: string) => ({ name, input_schema: { properties: { words: { type: "string" } } } });
  const request = { ...base, tools: [tool("search"), tool("file")], messages: [user("Find it")] };
  const asked = sensibleAnswer(request as JsonObject);
  expect(asked).toMatchObject({
    stopReason: "tool_use",
    content: [{ type: "tool_use", name: "search", input: { words: "example words" } }],
  });
  expect(
    sensibleAnswer({ ...request, tool_choice: { type: "tool", name: "file" } } as JsonObject),
  ).toMatchObject({ content: [{ name: "file" }] });
  expect(sensibleAnswer({ ...request, tool_choice: { type: "none" } } as JsonObject)).toMatchObject({
    content: [{ type: "text" }],
  });
  const result = user([{ type: "tool_result", tool_use_id: "x", content: "three books" }]);
  const messages = [...request.messages, { role: "assistant", content: [] }, result];
  expect(sensibleAnswer({ ...request, messages } as JsonObject)).toEqual({
    content: [{ type: "text", text: "The stand-in for the model got: three books" }],
  });
});

test("asked for JSON of a schema it gives some; else it says what it was asked", () => {
  const schema = { type: "object", properties: { title: { type: "string" } }, required: ["title"] };
  const format = { type: "json_schema", schema };
  const messages = [user("Write")];
  for (const how of [{ output_config: { format } }, { output_format: format }])
    expect(sensibleAnswer({ ...base, messages, ...how } as JsonObject)).toEqual({
      content: [{ type: "text", text: '{"title":"example title"}' }],
    });
  expect(sensibleAnswer({ ...base, messages: [user("x".repeat(1_000))] } as JsonObject)).toEqual({
    content: [{ type: "text", text: `The stand-in for the model was asked: ${"x".repeat(300)}…` }],
  });
});

test("an agent's script answers that agent, by the place in the conversation or by a function; it may leave it to the stand-in", async () => {
  const scripts: Record<string, StandInScript> = {
    list: [asks(["search", { words: "pawls" }]), "found"],
    asked: (request, count) => (count === 1 ? undefined : `${count}: ${request.model}`),
    broken: () => {
      throw new Error("no such fixture");
    },
  };
  await using model = await startStandIn((agent) => {
    const script = scripts[agent];
    return script && { script, file: `agents/${agent}.model.ts` };
  });
  const ask = (agent: string, messages: JsonObject[]) =>
    anthropic({ apiKey: "x", baseUrl: model.urlFor(agent) }).turn(
      { ...base, messages } as never,
      new AbortController().signal,
    );
  const first = await ask("list", [user("Go")]);
  expect(first).toMatchObject({
    stopReason: "tool_use",
    content: [{ name: "search", input: { words: "pawls" } }],
  });
  const next = [user("Go"), { role: "assistant", content: "…" }, user("On")];
  expect(await ask("list", next)).toMatchObject({ content: [{ text: "found" }] });
  expect(await ask("list", [...next, { role: "assistant", content: "…" }, user("And?")])).toMatchObject({
    content: [{ text: "The stand-in for the model was asked: And?" }],
  });
  expect(await ask("asked", [user("Hi")])).toMatchObject({
    content: [{ text: "The stand-in for the model was asked: Hi" }],
  });
  expect(await ask("asked", [user("Hi")])).toMatchObject({ content: [{ text: "2: m" }] });
  expect(await ask("other", [user("Hi")])).toMatchObject({
    content: [{ text: "The stand-in for the model was asked: Hi" }],
  });
  await expect(ask("broken", [user("Hi")])).rejects.toMatchObject({
    code: "model_invalid",
    message: expect.stringContaining("agents/broken.model.ts: no such fixture"),
  });
});
