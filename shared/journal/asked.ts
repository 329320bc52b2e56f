import type { TurnRequest } from "../ports/model.ts";
import { byteLength, canonicalJson, isJsonObject, type Json, sha256 } from "../values/json.ts";

/** What a model or a tool was asked, for people: nothing is decided by it. Without a text: its author wants none kept. */
export interface Asked {
  readonly text?: string;
  /** Of the whole, where the text is only its beginning, or left out. */
  readonly bytes?: number;
}

const ASKED_BYTES = 4_096;

/** As an entry keeps it. Nothing where nothing was asked. */
export function askedOf(text: string, isKept: boolean): { asked?: Asked } {
  if (text === "") return {};
  const bytes = byteLength(text);
  if (!isKept) return { asked: { bytes } };
  const whole = text.toWellFormed();
  return { asked: bytes <= ASKED_BYTES ? { text: whole } : { text: beginning(whole), bytes } };
}

/** As much as the bytes allow, and no half of a character. */
function beginning(text: string): string {
  const encoded = new TextEncoder().encode(text.slice(0, ASKED_BYTES)).subarray(0, ASKED_BYTES);
  return new TextDecoder().decode(encoded, { stream: true });
}

/** The same for the same request, whatever the order of its fields. */
export function askedHashOf(request: TurnRequest): string {
  return sha256(canonicalJson(JSON.parse(JSON.stringify(request)) as Json)).slice(0, 32);
}

/** What is new to the model in these messages: what comes after its own last word. */
export function promptText(system: string | readonly Json[] | undefined, messages: readonly Json[]): string {
  const said = messages.findLastIndex((one) => isJsonObject(one) && one.role === "assistant");
  const news = messages.slice(said + 1).flatMap((one) => {
    if (!isJsonObject(one)) return [];
    return `[${String(one.role)}]\n${contentText(one.content ?? null)}`;
  });
  if (news.length === 0) return "";
  const more = said < 0 ? [] : [`[${said + 1} earlier messages]`];
  return [...(system ? [`[system]\n${contentText(system as Json)}`] : []), ...more, ...news].join("\n\n");
}

/** The parts of a message as text: what is no text is named. */
export function contentText(content: Json): string {
  if (!Array.isArray(content)) return typeof content === "string" ? content : JSON.stringify(content);
  return content.filter(isJsonObject).map(partText).join("\n\n");
}

function partText(part: { readonly [name: string]: Json }): string {
  switch (part.type) {
    case "text":
      return String(part.text);
    case "tool_use":
      return `[uses ${String(part.name)}] ${JSON.stringify(part.input ?? null)}`;
    case "tool_result":
      return `[${part.is_error ? "failure" : "result"} of ${String(part.tool_use_id)}] ${contentText(part.content ?? "")}`;
    default:
      return `[${String(part.type)}]`;
  }
}
