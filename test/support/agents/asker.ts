import { defineAgent } from "../../../shared/agent.ts";

/** Asks the model one thing. */
export default defineAgent({
  limits: { budgetUsd: 1 },
  run: async ({ llm }) => {
    const { text, cost } = await llm("ask", { model: "claude-sonnet-5-5", prompt: "?", maxTokens: 100 });
    return { text, turns: cost.turns };
  },
});
