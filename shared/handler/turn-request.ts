import type { StandardSchemaV1 } from "@standard-schema/spec";
import type { LlmRequest } from "../llm.ts";
import type { TurnRequest } from "../ports/model.ts";
import type { Tool } from "../tool.ts";
import { isJsonObject, type Json, type JsonObject } from "../values/json.ts";
import { closed, type Wanted } from "./output.ts";
import { wrongCall } from "./scene.ts";

type Given = NonNullable<LlmRequest["tools"]>[number];

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

/** One turn of the conversation, as the Messages API has it. `container`: in which tools on its side ran before. */
export function turnRequest(
  name: string,
  request: Request,
  messages: readonly Json[],
  wanted: Wanted | undefined,
  container: string | undefined,
): TurnRequest {
  const { model, system, cache = false, parameters = {} } = request;
  const config = isJsonObject(parameters.output_config) ? parameters.output_config : {};
  const given = isJsonObject(parameters.container) ? { ...parameters.container, id: container } : container;
  const tools = toolsOf(name, request);
  return {
    ...(cache && { cache_control: CACHED }),
    ...parameters,
    model,
    max_tokens: maxTokensOf(request),
    ...(system !== undefined && { system: cache ? marked(blocksOf(system)) : (system as Json) }),
    ...(wanted && { output_config: { ...config, format: wanted.format } }),
    ...(container !== undefined && { container: given as Json }),
    messages: [...messages],
    ...(tools.length > 0 && { tools: cache ? marked(tools) : tools }),
  } as TurnRequest;
}

const CACHED = { type: "ephemeral" } as const;

/** The last of them is where the API's cache ends; the messages' end moves with `cache_control` of the request. */
function marked(parts: readonly JsonObject[]): JsonObject[] {
  return parts.map((part, at) => (at < parts.length - 1 ? part : { cache_control: CACHED, ...part }));
}

function blocksOf(system: string | readonly JsonObject[]): readonly JsonObject[] {
  return typeof system === "string" ? [{ type: "text", text: system }] : system;
}

function toolsOf(name: string, { tools = [], parameters }: Request): JsonObject[] {
  const more = Array.isArray(parameters?.tools) ? (parameters.tools as JsonObject[]) : [];
  return [...tools.map((tool) => toolParam(name, tool)), ...more];
}

/** What runs here; the others are on the API's own side. */
export function isOwn(tool: Given): tool is Tool {
  return isJsonObject(tool) && "run" in tool && typeof tool.run === "function";
}

function toolParam(name: string, tool: Given): JsonObject {
  if (!isOwn(tool)) {
    if ("type" in tool && typeof tool.type === "string" && tool.type !== "custom") return tool;
    throw wrongCall("llm", name, "tools made by tool({…}), or of the API's own side, with a type");
  }
  const { type, description, inputSchema, strict, parameters } = tool;
  if (type) return { ...parameters, type, name: tool.name };
  return {
    ...parameters,
    name: tool.name,
    description: description ?? "",
    input_schema: strict ? closed(inputSchema, `tool ${tool.name}`) : inputSchema,
    ...(strict && { strict }),
  };
}
