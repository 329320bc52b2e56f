import * as z from "zod";
import { type LocalModel, type Reply, type Script, startModel } from "../../../infra/local/model.ts";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { anthropic } from "../../../shared/adapters/anthropic.ts";
import { defineAgent, type Limits, type LlmRequest, type Tool, tool } from "../../../shared/agent.ts";
import { readJournal } from "../../../shared/journal/journal.ts";
import { isFinal } from "../../../shared/task/table.ts";
import type { JsonObject } from "../../../shared/values/json.ts";
import { bench } from "../bench.ts";
import { until } from "../time/until.ts";

export const MODEL = "claude-sonnet-5-5";
export const use = (name: string, input: JsonObject, id = `tu_${name}`): JsonObject => ({
  type: "tool_use",
  id,
  name,
  input,
});
export const uses = (...blocks: JsonObject[]): Reply => ({ content: blocks, stopReason: "tool_use" });

export const lookup = (run: (city: string) => unknown, more: Partial<Tool> = {}) => ({
  ...tool({
    name: "lookup",
    description: "Looks a city up",
    input: z.object({ city: z.string() }),
    readOnly: true,
    run: ({ city }) => run(city),
  }),
  ...more,
});

/** One task that asks the model once, against the stand-in. */
export async function asking(
  nats: LocalNats,
  script: Script,
  request: Partial<LlmRequest> = {},
  limits: Limits = {},
  given = {},
) {
  const model: LocalModel = await startModel(script);
  const agent = defineAgent({
    limits,
    run: ({ llm }) => llm("ask", { model: MODEL, prompt: "What is it?", ...request }),
  });
  const b = await bench(nats, "nats-kv", agent, given);
  Object.assign(b.deps, { model: anthropic({ apiKey: "test", baseUrl: model.url }) });
  return Object.assign(b, {
    model,
    finish: async () => {
      await b.submit({}, { id: "t" });
      await until("t is over", async () => {
        await b.drain();
        return isFinal(await b.task("t"));
      });
      return b.task("t");
    },
    /** A message of the n-th request. */
    sent: (request: number, message: number) =>
      ((model.requests[request - 1]?.body.messages ?? []) as JsonObject[])[message],
    journal: async () => (await readJournal(b.deps, "t", () => {}))?.entries ?? [],
    [Symbol.asyncDispose]: async () => {
      await b.deps[Symbol.asyncDispose]();
      await model[Symbol.asyncDispose]();
    },
  });
}
