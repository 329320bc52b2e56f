import { describe, expect, expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  type Agent,
  type AgentContext,
  type Child,
  defineAgent,
  type Json,
  type JsonObject,
} from "../../shared/agent.ts";
import { runAgent } from "../../shared/testing.ts";

const summary = defineAgent({
  input: z.object({ urls: z.array(z.url()).min(1), words: z.coerce.number().default(100) }),
  run: ({ input }) => ({ summary: input.urls.join(), words: input.words }),
});
const silent = defineAgent({ run: async () => {} });

declare const submit: AgentContext<unknown>["submit"];
const key = { key: "k" };
/** Never called: these are the compiler's. */
const typed = {
  module: () => submit({ summary }, { urls: ["https://a.test/"] }, key),
  byType: () => submit<typeof summary>("summary", { urls: ["https://a.test/"], words: "7" }, key),
  byName: () => submit("summary", { anything: 1 }, key),
  silent: () => submit({ silent }, { anything: 1 }, key),
  // @ts-expect-error: urls is missing
  missing: () => submit({ summary }, {}, key),
  // @ts-expect-error: urls are texts
  wrong: () => submit<typeof summary>("summary", { urls: [7] }, key),
  // @ts-expect-error: no agent at all
  none: () => submit({ summary: "summary" }, {}, key),
  // @ts-expect-error: a date is no JSON
  noJson: () => submit("summary", { at: new Date() }, key),
};

describe("a child has its agent's types", () => {
  test("by its module, by its type, by its name", () => {
    type Summary = Child<{ summary: string; words: number }>;
    expectTypeOf(typed.module).returns.resolves.toEqualTypeOf<Summary>();
    expectTypeOf(typed.byType).returns.resolves.toEqualTypeOf<Summary>();
    expectTypeOf(typed.byName).returns.resolves.toEqualTypeOf<Child<Json>>();
    expectTypeOf(typed.silent).returns.resolves.toEqualTypeOf<Child<null>>();
    expectTypeOf(summary).toExtend<Agent>();
    expectTypeOf<Parameters<typeof submit>[1]>().toEqualTypeOf<JsonObject>();
    expect(Object.keys(typed)).toHaveLength(8);
  });
});

describe("a child that is named by its module", () => {
  const parent = (input: unknown, named: Readonly<Record<string, Agent>> = { summary }) =>
    defineAgent({
      async run({ submit: child }) {
        return (await child(named, input as JsonObject, { key: "one" })).result();
      },
    });

  test("is the same task as one that is named by a text", async () => {
    const asked: string[] = [];
    const children = (agent: string, input: JsonObject) => {
      asked.push(agent);
      return input;
    };
    const input = { urls: ["https://a.test/"] };
    const byModule = await runAgent(parent(input), {}, { children });
    const byName = await runAgent(
      defineAgent({
        run: async ({ submit: child }) => (await child("summary", input, { key: "one" })).result(),
      }),
      {},
      { children },
    );
    // Its input is as it was given: what its schema makes of it, its own run does.
    expect(byModule).toMatchObject({ state: "completed", result: input });
    expect(byName.journal).toEqual(byModule.journal);
    expect(asked).toEqual(["summary", "summary"]);
  });

  test("is refused before it is submitted where its schema does not accept the input", async () => {
    const run = await runAgent(parent({ urls: [] }), {}, { children: () => null });
    expect(run).toMatchObject({
      state: "failed",
      error: { code: "input_invalid", message: expect.stringMatching(/^submit summary one: .*urls: /) },
    });
    expect(run.journal).toEqual([]);
  });

  test.each([[{}], [{ summary, silent }], [{ summary: { kind: "another" } }]])(
    "is one agent: %o",
    async (named) => {
      const run = await runAgent(parent({}, named as never), {}, { children: () => null });
      expect(run).toMatchObject({ state: "failed", error: { code: "call_invalid" } });
    },
  );
});
