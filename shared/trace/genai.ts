import type { Cost } from "../journal/cost.ts";
import type { Turn, TurnRequest } from "../ports/model.ts";
import type { SpanValue } from "../ports/trace.ts";
import type { Json, JsonObject } from "../values/json.ts";
import type { Redact } from "../values/redact.ts";

type Attributes = Record<string, SpanValue | undefined>;

/** Of each part of a message, of its parts, and of all messages together; in characters. One message fits. */
const TEXT_KEPT = 1_000;
const PARTS_KEPT = 5;
const MESSAGES_KEPT = 8_000;

/** A turn's request, by https://opentelemetry.io/docs/specs/semconv/gen-ai. Without `redact` nothing of its content. */
export function askedAs(request: TurnRequest, again: boolean, redact: Redact | undefined): Attributes {
  const { model, max_tokens: maxTokens, temperature, top_p: topP, messages, system } = request;
  return {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "anthropic",
    "gen_ai.request.model": model,
    "gen_ai.request.max_tokens": maxTokens,
    ...(typeof temperature === "number" && { "gen_ai.request.temperature": temperature }),
    ...(typeof topP === "number" && { "gen_ai.request.top_p": topP }),
    "pawl.again": again,
    ...(redact && {
      "gen_ai.input.messages": messagesText(messages as readonly Json[], redact),
      ...(system !== undefined && { "gen_ai.system_instructions": partsText(system, redact) }),
    }),
  };
}

/** A turn's answer. Tokens of input are all that were read, cached or not. */
export function answeredAs(
  { usage, model, stopReason, requestId, content }: Turn,
  cost: Cost,
  asked: Attributes,
  redact: Redact | undefined,
): Attributes {
  return {
    "gen_ai.response.model": model,
    "gen_ai.response.finish_reasons": [stopReason],
    "gen_ai.usage.input_tokens": cost.inputTokens,
    "gen_ai.usage.output_tokens": cost.outputTokens,
    "gen_ai.usage.cache_read.input_tokens": usage.cache_read_input_tokens ?? 0,
    "gen_ai.usage.cache_creation.input_tokens": usage.cache_creation_input_tokens ?? 0,
    "anthropic.request_id": requestId,
    "pawl.usd": cost.usd,
    ...(asked["pawl.again"] === true && { "pawl.respent_usd": cost.usd }),
    ...(redact && {
      "gen_ai.output.messages": messagesText(
        [{ role: "assistant", content: content as Json, finish_reason: stopReason }],
        redact,
      ),
    }),
  };
}

/** The newest messages, as many as there is room for. */
function messagesText(messages: readonly Json[], redact: Redact): string {
  const kept: string[] = [];
  let chars = 2;
  for (const message of [...messages].reverse()) {
    const { role, content, finish_reason } = message as JsonObject;
    const reason = finish_reason === undefined ? "" : `,"finish_reason":${JSON.stringify(finish_reason)}`;
    const text = `{"role":${JSON.stringify(role ?? "user")},"parts":${partsText(content, redact)}${reason}}`;
    chars += text.length + 1;
    if (chars > MESSAGES_KEPT) break;
    kept.unshift(text);
  }
  return `[${kept.join(",")}]`;
}

function partsText(content: Json | undefined, redact: Redact): string {
  const blocks = (Array.isArray(content) ? content : [{ type: "text", text: content }]) as JsonObject[];
  return JSON.stringify(blocks.slice(0, PARTS_KEPT).map((block) => part(block, redact)));
}

function part({ type, text, name, id, tool_use_id, input, content }: JsonObject, redact: Redact): JsonObject {
  const short = (value: Json | undefined) =>
    redact(typeof value === "string" ? value : JSON.stringify(value ?? null)).slice(0, TEXT_KEPT);
  switch (type) {
    case "text":
      return { type: "text", content: short(text) };
    case "tool_use":
      return { type: "tool_call", id: id ?? "", name: name ?? "", arguments: short(input) };
    case "tool_result":
      return { type: "tool_call_response", id: tool_use_id ?? "", response: short(content) };
    default:
      return { type: String(type) };
  }
}
