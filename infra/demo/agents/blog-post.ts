import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { defineAgent } from "../../../shared/agent.ts";

/** Stands in for an agent whose work can't be taken back: every run "publishes" another post. */
export default defineAgent({
  input: z.object({ title: z.string(), seconds: z.number() }),
  async run({ id, input, signal }) {
    console.log("AT work");
    await sleep(input.seconds * 1000, undefined, { signal });
    signal.throwIfAborted();
    const post = { id, title: input.title, draft: Math.random().toString(36).slice(2, 8) };
    appendFileSync(process.env.PAWL_DEMO_POSTS as string, `${JSON.stringify(post)}\n`);
    return post;
  },
});
