import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { LlmRequest } from "../llm.ts";
import type { TurnRequest } from "../ports/model.ts";
import type { Tool } from "../tool.ts";
import { isJsonObject, type Json } from "../values/json.ts";
import { closed, type Wanted } from "./output.ts";
import { wrongCall } from "./scene.ts";

const DEFAULT_MAX_TOKENS = 8_192;

/** What a handler asks, whatever it wants the answer to be. */
export type Request = LlmRequest<StandardSchemaV1>;

export function firstMessages(name: string, request: Request): Json[] {
  if (typeof request?.model !== "string") throw wrongCall("llm", name, "{ model, prompt }, model a text");
  if (request.messages) return [...request.messages];
  if (typeof request.prompt !== "string") throw wrongCall("llm", name, "a prompt, or messages");
  return [{ role: "user", content: request.prompt }];
}

export const maxTokensOf = ({ maxTokens = DEFAULT_MAX_TOKENS }: Request) => maxTokens;

/** One turn of the conversation, as the Messages API has it. */
export function turnRequest(
  request: Request,
  messages: readonly Json[],
  wanted: Wanted | undefined,
): TurnRequest {
  const { model, system, tools = [], parameters = {} } = request;
  const config = isJsonObject(parameters.output_config) ? parameters.output_config : {};
  return {
    ...parameters,
    model,
    max_tokens: maxTokensOf(request),
    ...(system !== undefined && { system }),
    ...(wanted && { output_config: { ...config, format: wanted.format } }),
    messages: [...messages],
    ...(tools.length > 0 && { tools: tools.map(toolParam) }),
  };
}

function toolParam({ name, description, inputSchema, strict }: Tool) {
  return {
    name,
    description,
    input_schema: strict ? closed(inputSchema, `tool ${name}`) : inputSchema,
    ...(strict && { strict }),
  };
}
