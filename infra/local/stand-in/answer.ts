import type { Json, JsonObject } from "../../../shared/values/json.ts";
import type { Reply } from "../model.ts";
import { sampleOf } from "./sample.ts";

const LONGEST_ECHO = 300;

/**
 * What the stand-in says by itself, the same to the same request. Offered tools it asks for one, with an input that fits
 * its schema, and answers when it has the result; asked for JSON of a schema it gives some that fits; else it says what
 * it was asked.
 */
export function sensibleAnswer(request: JsonObject): Reply {
  const messages = listOf(request.messages);
  const isResult = blocksOf(messages.at(-1)).some((block) => block.type === "tool_result");
  const tool = isResult ? undefined : toolOf(request);
  if (tool) {
    // Unique in its conversation, and the same when the turn is asked for again.
    const id = `use_${messages.length}_${String(tool.name)}`;
    const use = { type: "tool_use", id, name: tool.name ?? "", input: sampleOf(tool.input_schema ?? {}) };
    return { content: [use], stopReason: "tool_use" };
  }
  const schema = formatOf(request);
  const said = schema === undefined ? echo(messages) : JSON.stringify(sampleOf(schema));
  return { content: [{ type: "text", text: said }] };
}

/** The one that it is told to use, else the first. Tools of the model's own side have no schema, and are left alone. */
function toolOf({ tools, tool_choice: choice }: JsonObject): JsonObject | undefined {
  const { type, name } = objectOf(choice);
  if (type === "none") return undefined;
  const offered = listOf(tools).filter((tool) => tool.input_schema !== undefined);
  return type === "tool" ? offered.find((tool) => tool.name === name) : offered[0];
}

function formatOf({ output_config: config, output_format: older }: JsonObject): Json | undefined {
  const format = objectOf(objectOf(config).format ?? older);
  return format.type === "json_schema" ? format.schema : undefined;
}

function echo(messages: readonly JsonObject[]): string {
  const results = blocksOf(messages.at(-1)).flatMap(({ type, content }) =>
    type === "tool_result" ? [typeof content === "string" ? content : JSON.stringify(content ?? null)] : [],
  );
  if (results.length > 0) return `The stand-in for the model got: ${short(results.join("; "))}`;
  const asked = messages.filter(({ role }) => role === "user").at(-1);
  const words = blocksOf(asked).flatMap(({ type, text }) => (type === "text" ? [String(text)] : []));
  return `The stand-in for the model was asked: ${short(words.join("\n"))}`;
}

function short(text: string): string {
  const characters = [...text];
  return characters.length > LONGEST_ECHO ? `${characters.slice(0, LONGEST_ECHO).join("")}…` : text;
}

function blocksOf(message: JsonObject | undefined): JsonObject[] {
  const content = message?.content;
  return typeof content === "string" ? [{ type: "text", text: content }] : listOf(content);
}

function listOf(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.map((one) => objectOf(one as Json)) : [];
}

function objectOf(value: Json | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}
