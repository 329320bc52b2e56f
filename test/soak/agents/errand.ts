import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import * as z from "zod";
import { defineAgent, tool } from "../../../shared/agent.ts";
import { LANES } from "../work.ts";

/** How often a step shows that it goes on, in milliseconds. */
const TICK = 25;

/**
 * Two steps, a conversation of two turns with a tool that posts, and a mail. Everything that it does is seen outside of
 * Pawl: starts, steps and ends in a file, posts by their receiver, turns by the model's stand-in, each with the execution
 * that did it.
 */
export default defineAgent({
  input: z.object({
    board: z.string(),
    notes: z.string(),
    ms: z.number(),
    mail: z.enum(["keyed", "verified", "blind"]),
  }),
  limits: { lanes: LANES, attempts: 50, backoff: { first: "1s", longest: "5s" }, budgetUsd: 100 },
  async run({ id, input, step, effect, llm, signal }) {
    const run = `${process.pid}-${crypto.randomUUID().slice(0, 8)}`;
    const note = (what: string, deed?: string) => {
      // A process that was frozen may wake up right after this line: then its signal has aborted, and nothing is written.
      const at = Date.now();
      signal.throwIfAborted();
      appendFileSync(input.notes, `${JSON.stringify({ at, id, run, pid: process.pid, what, deed })}\n`);
    };
    const work = async (deed: string) => {
      note("act", deed);
      // Acts that no journal stands before: of a holder that should be silent, they are seen at once.
      for (let left = input.ms; left > 0; left -= TICK) {
        await sleep(Math.min(TICK, left), undefined, { signal });
        note("act", `${deed} goes on`);
      }
      return `${deed} by ${run}`;
    };
    const place = (key: string) => `${input.board}/${id}/${key}`;
    const send = async (deed: string, key: string) => {
      const at = Date.now();
      signal.throwIfAborted();
      const body = JSON.stringify({ deed, run, at });
      const { status } = await fetch(place(key), { method: "POST", body, signal });
      return { status, by: run };
    };
    const look = async (key: string) => {
      const response = await fetch(place(key), { signal });
      return response.ok ? { status: 200, by: "verify" } : undefined;
    };
    const post = tool({
      name: "post",
      description: "Posts a text",
      input: z.object({ text: z.string() }),
      honoursKey: true,
      run: (_, key) => send("ask/post/use_1", key),
      verify: (_, key) => look(key),
    });

    note("start");
    const prepared = await step("prepare", () => work("prepare"));
    const { text } = await llm("ask", {
      model: "claude-sonnet-5-5",
      prompt: id,
      maxTokens: 100,
      tools: [post],
      parameters: { metadata: { user_id: run } },
    });
    const mailed = await effect("mail", {
      run: (key) => send("mail", key),
      ...(input.mail !== "blind" && { verify: look }),
      honoursKey: input.mail === "keyed",
    });
    const finished = await step("finish", () => work("finish"));
    note("end");
    return { prepared, text, mailed, finished };
  },
});
