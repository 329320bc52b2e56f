import { ToolError } from "../errors/errors.ts";
import { toolContent } from "../tool.ts";
import { isJsonObject, type JsonObject } from "../values/json.ts";

/** What a server answers to a call, as the model is told it: data, whatever it says. Throws `ToolError` for its own error. */
export function contentOf(result: JsonObject): unknown {
  const blocks = (Array.isArray(result.content) ? result.content.filter(isJsonObject) : []).map(blockOf);
  if (result.isError === true) throw new ToolError(textOf(blocks) || "The tool failed, and did not say why");
  if (blocks.length === 0) return result.structuredContent ?? null;
  return blocks.every(({ type }) => type === "text") ? textOf(blocks) : toolContent(blocks);
}

const textOf = (blocks: readonly JsonObject[]) => blocks.map(({ text }) => String(text ?? "")).join("\n");

/** As the Messages API has it: what that does not take is told as its JSON. */
function blockOf(block: JsonObject): JsonObject {
  const { type, text, data, mimeType, resource } = block;
  if (type === "text") return { type: "text", text: String(text) };
  if (type === "image")
    return {
      type: "image",
      source: { type: "base64", media_type: String(mimeType), data: String(data) },
    };
  if (type === "resource" && isJsonObject(resource) && typeof resource.text === "string")
    return { type: "text", text: resource.text };
  return { type: "text", text: JSON.stringify(block).slice(0, 20_000) };
}
