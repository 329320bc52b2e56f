import { priceOf, prices } from "../../../shared/journal/prices.ts";
import { isJsonObject, type Json, type JsonObject } from "../../../shared/values/json.ts";
import { tokensOf, type World } from "./tokens.ts";

/** What is a beta's, and the beginning of the header that it needs. */
const BETAS: Readonly<Record<string, string>> = {
  mcp_servers: "mcp-client-",
  context_management: "context-management-",
};

/** Why the API does not take a request, where it does not. */
export function refusalOf(body: JsonObject, betas: readonly string[], world: World): string | undefined {
  const { messages, model, max_tokens: most } = body;
  if (typeof model !== "string") return "model: Field required";
  if (!Array.isArray(messages) || messages.length === 0) return "messages: at least one message is required";
  if (body.betas !== undefined) return "betas: Extra inputs are not permitted";
  if (most !== undefined && !(Number.isInteger(most) && Number(most) >= 0))
    return "max_tokens: Input should be a valid integer";
  const needed = Object.keys(BETAS).find(
    (name) => body[name] != null && !betas.some((beta) => beta.startsWith(BETAS[name] as string)),
  );
  if (needed) return `${needed}: Extra inputs are not permitted`;
  const window = priceOf(model, prices)?.window ?? Number.POSITIVE_INFINITY;
  const tokens = tokensOf(body, world);
  if (tokens > window) return `prompt is too long: ${tokens} tokens > ${window} maximum`;
  return unanswered(messages.filter(isJsonObject)) ?? looseFormat(body);
}

/** Each tool that the model asked for has its result in the next message. */
function unanswered(messages: readonly JsonObject[]): string | undefined {
  for (const [at, { role, content }] of messages.entries()) {
    const ids = role === "assistant" ? idsOf(content, "tool_use", "id") : [];
    const answered = new Set(idsOf(messages[at + 1]?.content, "tool_result", "tool_use_id"));
    const open = ids.filter((id) => !answered.has(id));
    if (open.length > 0)
      return `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(", ")}`;
  }
  return undefined;
}

function idsOf(content: Json | undefined, type: string, name: string): string[] {
  const blocks = Array.isArray(content) ? content.filter(isJsonObject) : [];
  return blocks.filter((block) => block.type === type).map((block) => String(block[name]));
}

/** Structured outputs take objects that are closed, as strict tools do. */
function looseFormat({ output_config: config, tools }: JsonObject): string | undefined {
  const format = isJsonObject(config) && isJsonObject(config.format) ? config.format.schema : undefined;
  if (format !== undefined && isLoose(format))
    return "output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false";
  const strict = (Array.isArray(tools) ? tools.filter(isJsonObject) : []).filter(
    (tool) => tool.strict === true,
  );
  const at = strict.findIndex((tool) => isLoose(tool.input_schema));
  return at < 0
    ? undefined
    : `tools.${at}.custom: For 'object' type, 'additionalProperties' must be explicitly set to false`;
}

function isLoose(schema: Json | undefined): boolean {
  if (Array.isArray(schema)) return schema.some((one) => isLoose(one as Json));
  if (!isJsonObject(schema)) return false;
  if (schema.type === "object" && schema.additionalProperties !== false) return true;
  return Object.values(schema).some((one) => isLoose(one));
}
