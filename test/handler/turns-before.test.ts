import { expect, test } from "vitest";
import * as z from "zod";
import { defineAgent, tool } from "../../shared/agent.ts";
import type { Entry } from "../../shared/journal/entries.ts";
import { runWith } from "../../shared/testing/run-agent.ts";
import { scripted } from "../../shared/testing/scripted-model.ts";
import { asks } from "../../shared/testing.ts";
import recorded from "../support/recorded/turns-before.json" with { type: "json" };

test("a journal that was stored before answers were typed and tools asked first goes on from every entry", async () => {
  const entries = recorded as unknown as Entry[];
  // The last took an answer, which is in the document of a task that was stored then.
  for (let stored = 1; stored < entries.length; stored++) {
    const done: string[] = [];
    const look = tool({
      name: "look",
      description: "Looks",
      input: z.object({ at: z.string() }),
      readOnly: true,
      run: ({ at }) => {
        done.push("look");
        return `${at}: 7`;
      },
    });
    const post = tool({
      name: "post",
      description: "Posts",
      input: z.object({ text: z.string() }),
      run: ({ text }) => {
        done.push("post");
        return { posted: text };
      },
    });
    const agent = defineAgent({
      limits: { budgetUsd: 1 },
      run: async ({ llm, approval }) => {
        const request = { model: "claude-sonnet-5-5", prompt: "?", maxTokens: 100, tools: [look, post] };
        const { text } = await llm("ask", request);
        return { text, by: (await approval("go")).by };
      },
    });
    const model = scripted([asks(["look", { at: "map" }], ["post", { text: "hi" }]), "done"]);
    const options = { approvals: { go: true }, resolve: () => ({ receipt: { value: { posted: "hi" } } }) };
    const run = await runWith(agent, {}, options, model, [], entries.slice(0, stored));
    expect(run, `from ${stored}`).toMatchObject({ state: "completed", result: { text: "done", by: "test" } });
    const isKept = (kind: string, key: string) =>
      entries.slice(0, stored).some((one) => one.kind === kind && one.key === key);
    expect(done.includes("look"), `look, from ${stored}`).toBe(!isKept("step", "ask/look/use_1_look#1"));
    expect(done.includes("post"), `post, from ${stored}`).toBe(!isKept("intent", "ask/post/use_2_post#1"));
    const asked = 2 - entries.slice(0, stored).filter((one) => one.kind === "receipt" && one.cost).length;
    expect(run.requests).toHaveLength(asked);
  }
});
