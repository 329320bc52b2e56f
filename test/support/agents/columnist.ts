import * as z from "zod";
import { defineAgent, tool } from "../../../shared/agent.ts";

/** Twelve turns of a model and six posts, for the tests that kill it: the model asks for what the stand-in's script says. */
export default defineAgent({
  input: z.object({ board: z.string() }),
  limits: { budgetUsd: 50 },
  async run({ id, input, llm, signal }) {
    const post = tool({
      name: "post",
      description: "Posts a text",
      input: z.object({ text: z.string() }),
      honoursKey: true,
      run: async ({ text }, key) => {
        const response = await fetch(`${input.board}/${id}/${key}`, { method: "POST", body: text, signal });
        return { status: response.status };
      },
      verify: async (_, key) => {
        const response = await fetch(`${input.board}/${id}/${key}`, { signal });
        return response.ok ? { status: 200 } : undefined;
      },
    });
    const read = tool({
      name: "read",
      description: "Reads a text",
      input: z.object({ n: z.number() }),
      readOnly: true,
      run: ({ n }) => `text ${n}`,
    });
    const answer = await llm("write", {
      model: "claude-sonnet-5-5",
      prompt: id,
      maxTokens: 100,
      tools: [post, read],
    });
    return { text: answer.text };
  },
});
