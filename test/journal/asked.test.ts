import { expect, test } from "vitest";
import * as z from "zod";
import { defineAgent, tool } from "../../shared/agent.ts";
import { askedOf, promptText } from "../../shared/journal/asked.ts";
import type { Entry } from "../../shared/journal/entries.ts";
import { runAgent } from "../../shared/testing/run-agent.ts";

const MODEL = "claude-sonnet-5-5";
const uses = (name: string, input: object, id: string) => ({
  content: [{ type: "tool_use" as const, name, input, id }],
  stopReason: "tool_use",
});
const asked = (journal: readonly Entry[], key: string) =>
  journal.flatMap((entry) => (entry.key === key && "asked" in entry ? [entry.asked] : []));

function agent(more: { keepPrompts?: boolean } = {}) {
  const read = { description: "d", input: z.object({ city: z.string() }), run: () => "rain" };
  return defineAgent({
    run: async ({ llm }) => {
      const tools = [tool({ ...read, name: "look", readOnly: true }), tool({ ...read, name: "book" })];
      const { text } = await llm("ask", {
        model: MODEL,
        system: "Be brief",
        prompt: "Shall we?",
        tools,
        ...more,
      });
      return text;
    },
  });
}
const script = [uses("look", { city: "Vienna" }, "t1"), uses("book", { city: "Vienna" }, "t2"), "Yes"];

test("a turn's new messages and a tool's input are kept, the system prompt once", async () => {
  const { journal, result } = await runAgent(agent(), {}, { model: script as never });
  expect(result).toBe("Yes");
  expect(asked(journal, "ask/turn 1#1")).toEqual([{ text: "[system]\nBe brief\n\n[user]\nShall we?" }]);
  expect(asked(journal, "ask/turn 2#1")).toEqual([{ text: "[user]\n[result of t1] rain" }]);
  expect(asked(journal, "ask/look/t1#1")).toEqual([{ text: '{"city":"Vienna"}' }]);
  expect(asked(journal, "ask/book/t2#1")).toEqual([{ text: '{"city":"Vienna"}' }]);
});

test("an author who wants none kept has none kept, and what was done stays", async () => {
  const { journal, result } = await runAgent(agent({ keepPrompts: false }), {}, { model: script as never });
  expect(result).toBe("Yes");
  const all = journal.flatMap((entry) => ("asked" in entry && entry.asked ? [entry.asked] : []));
  expect(all).toHaveLength(5);
  for (const one of all) expect(Object.keys(one)).toEqual(["bytes"]);
  const told = JSON.stringify(journal.filter(({ kind }) => kind === "intent"));
  expect(told).not.toMatch(/Be brief|Vienna/);
});

test("started anew, nothing is kept twice", async () => {
  const crashAfter = "intent:ask/turn 2";
  const { journal } = await runAgent(agent(), {}, { model: script as never, crashAfter });
  expect(journal.filter(({ kind, key }) => kind === "intent" && key === "ask/turn 2#1")).toHaveLength(2);
  expect(asked(journal, "ask/turn 2#1")).toHaveLength(1);
});

test("at most 4 KiB is kept, whole characters, with the length of the whole", () => {
  expect(askedOf("", true)).toEqual({});
  const { asked: cut } = askedOf("é€".repeat(4_000), true);
  expect(cut?.bytes).toBe(20_000);
  expect(new TextEncoder().encode(cut?.text).length).toBeLessThanOrEqual(4_096);
  expect(new TextEncoder().encode(cut?.text).length).toBeGreaterThan(4_090);
  expect("é€".repeat(4_000).startsWith(cut?.text as string)).toBe(true);
  expect(askedOf("a\ud800", true)).toEqual({ asked: { text: "a\ufffd" } });
});

test("of a conversation that goes on only what is new is told", () => {
  const before = [
    { role: "user", content: "old" },
    { role: "assistant", content: "answer" },
  ];
  const text = promptText(undefined, [
    ...before,
    { role: "user", content: [{ type: "image" }, { type: "text", text: "new" }] },
  ]);
  expect(text).toBe("[2 earlier messages]\n\n[user]\n[image]\n\nnew");
});
