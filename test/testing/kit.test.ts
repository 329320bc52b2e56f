import { expect, test } from "vitest";
import * as z from "zod";
import { defineAgent, Fatal, tool } from "../../shared/agent.ts";
import { asks, everyCrash, runAgent } from "../../shared/testing.ts";

const MODEL = "claude-haiku-4-5";
const ask = { model: MODEL, prompt: "?", maxTokens: 20 };

test("a list of answers is given turn by turn, over all conversations", async () => {
  const agent = defineAgent({
    run: async ({ llm }) => [(await llm("a", ask)).text, (await llm("b", ask)).text],
  });
  const model = ["A", "B"];
  expect(await runAgent(agent, {}, { model })).toMatchObject({ result: ["A", "B"] });
  // A turn whose answer was lost gets it again, and one that was stored takes none.
  for (const { crash, run } of await everyCrash(agent, {}, { model }))
    expect(run, crash).toMatchObject({ state: "completed", result: ["A", "B"] });
  expect(await runAgent(agent, {}, { model: ["A"] })).toMatchObject({
    state: "failed",
    error: { message: expect.stringContaining("The script has no turn 2") },
  });
});

test("so are those of conversations with tools, and of conversations beside each other", async () => {
  const look = tool({
    name: "look",
    description: "Looks",
    input: z.object({}),
    readOnly: true,
    run: () => "seen",
  });
  const agent = defineAgent({
    run: async ({ llm }) => {
      const first = await llm("a", { ...ask, tools: [look] });
      const both = await Promise.all([llm("b", ask), llm("c", ask)]);
      return [first.text, ...both.map(({ text }) => text)];
    },
  });
  // One answer is too large to be kept in the journal's entry.
  const large = "C".repeat(20_000);
  const model = [asks(["look", {}]), "A", "B", large];
  for (const { crash, run } of await everyCrash(agent, {}, { model }))
    expect(run.result, crash).toEqual(["A", "B", large]);
});

test("children that throw are children that failed", async () => {
  const parent = (catches: boolean) =>
    defineAgent({
      run: async ({ submit }) => {
        const child = await submit("echo", {}, { key: "k" });
        return catches ? child.result().catch((error: Error) => error.message) : child.result();
      },
    });
  const children = () => {
    throw new Error("no paper");
  };
  expect(await runAgent(parent(false), {}, { children })).toMatchObject({
    state: "failed",
    error: { code: "child_failed", message: expect.stringMatching(/handler_failed: no paper$/) },
  });
  const later = async () => {
    throw new Fatal("no ink");
  };
  expect(await runAgent(parent(true), {}, { children: later })).toMatchObject({
    state: "completed",
    result: expect.stringMatching(/fatal: no ink$/),
  });
  expect(await runAgent(parent(false), {}, { children: async () => "printed" })).toMatchObject({
    result: "printed",
  });
});
