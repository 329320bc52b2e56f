import { defineAgent } from "../../../shared/agent.ts";

/** A step, then one turn of a model. */
export default defineAgent({
  run: async ({ step, llm }) => {
    await step("prepare", () => "ready");
    const answer = await llm("ask", { model: "claude-sonnet-5-5", prompt: "Write it." });
    return answer.text;
  },
});
