import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { defineAgent } from "../../../shared/agent.ts";

/** An agent whose work can't be taken back: asked again, its model would write another draft, and every run publishes. */
export default defineAgent({
  input: z.object({ title: z.string(), seconds: z.number() }),
  async run({ id, input, llm, signal }) {
    const prompt = `Write a post of one sentence: ${input.title}`;
    const draft = await llm("draft", { model: "claude-sonnet-5-5", maxTokens: 500, prompt });
    console.log("AT work");
    await sleep(input.seconds * 1000, undefined, { signal });
    signal.throwIfAborted();
    const post = { id, title: input.title, text: draft.text };
    appendFileSync(process.env.PAWL_DEMO_POSTS as string, `${JSON.stringify(post)}\n`);
    return post;
  },
});
