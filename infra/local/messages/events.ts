import type { RawMessageStreamEvent } from "@anthropic-ai/sdk/resources/messages";
import type { JsonObject } from "../../../shared/values/json.ts";

type Event = JsonObject & { readonly type: RawMessageStreamEvent["type"] };

/** A message as the events that make it up, its texts and inputs in two pieces each. */
export function eventsOf(whole: JsonObject): Event[] {
  const {
    content,
    stop_reason = null,
    stop_details = null,
    container,
    usage,
    ...rest
  } = whole as JsonObject & {
    content: JsonObject[];
    usage: JsonObject;
  };
  // Known at the end only.
  const delta = { stop_reason, stop_sequence: null, stop_details, ...(container && { container }) };
  const start = { ...rest, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } };
  return [
    { type: "message_start", message: start },
    ...content.flatMap(blockEvents),
    { type: "message_delta", delta, usage },
    { type: "message_stop" },
  ];
}

function blockEvents(block: JsonObject, index: number): Event[] {
  const [begun, deltas] = piecesOf(block);
  return [
    { type: "content_block_start", index, content_block: begun },
    ...deltas.map((delta): Event => ({ type: "content_block_delta", index, delta })),
    { type: "content_block_stop", index },
  ];
}

/** How a block begins, and what is added to it. What is not streamed in pieces is whole at its beginning. */
function piecesOf(block: JsonObject): [JsonObject, JsonObject[]] {
  switch (block.type) {
    case "text": {
      const pieces = halves(String(block.text)).map((text) => ({ type: "text_delta", text }));
      return [{ ...block, text: "" }, pieces];
    }
    case "tool_use":
    case "server_tool_use":
    case "mcp_tool_use": {
      const pieces = halves(JSON.stringify(block.input ?? {}));
      return [
        { ...block, input: {} },
        pieces.map((json) => ({ type: "input_json_delta", partial_json: json })),
      ];
    }
    case "thinking": {
      const pieces = halves(String(block.thinking)).map((thinking) => ({ type: "thinking_delta", thinking }));
      const signed = { type: "signature_delta", signature: block.signature ?? "" };
      return [{ ...block, thinking: "", signature: "" }, [...pieces, signed]];
    }
    case "compaction":
      return [{ ...block, content: "" }, [{ type: "compaction_delta", content: block.content ?? null }]];
    default:
      return [block, []];
  }
}

function halves(text: string): string[] {
  const half = Math.ceil(text.length / 2);
  return [text.slice(0, half), text.slice(half)];
}
