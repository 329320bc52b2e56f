import * as z from "zod";
import { defineAgent } from "../shared/agent.ts";
import type summarize from "./summarize.ts";

/** Has every page summed up by a task of its own, all at once, and puts the answers together. */
export default defineAgent({
  input: z.object({ urls: z.array(z.url()).min(1).max(50) }),
  children: ["summarize"],
  async run({ input, submit }) {
    const children = [];
    for (const url of input.urls)
      children.push(await submit<typeof summarize>("summarize", { urls: [url] }, { key: url }));
    const results = await Promise.all(children.map((child) => child.result()));
    return { digest: results.map(({ summary }) => summary) };
  },
});
