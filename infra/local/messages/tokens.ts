import { isJsonObject, type Json, type JsonObject } from "../../../shared/values/json.ts";

/** What only the API's side knows. */
export interface World {
  /** How many tokens a URL or a file has, by its address or id. 1,000 where it is not said. */
  readonly sizes?: Readonly<Record<string, number>>;
  /** Of an image, and of each page of a PDF. */
  readonly imageTokens?: number;
  /** Never above 1. */
  readonly tokensPerByte?: number;
  /** What one search or fetch puts into the context. */
  readonly resultTokens?: number;
  /** How far the count is off: it is an estimate, 0.02 is two percent too few. */
  readonly countError?: number;
}

/** What a prompt about tools takes, and what a built-in tool's own schema does. */
const TOOL_PROMPT = 350;
const BUILT_IN_TOOL = 700;

/** What the model reads of a request, before any tool on the API's side has brought more. */
export function tokensOf(body: JsonObject, world: World = {}): number {
  const tools = Array.isArray(body.tools) ? body.tools.filter(isJsonObject) : [];
  const builtIn = tools.filter(({ type }) => type !== undefined && type !== "custom").length;
  const prompt = tools.length > 0 ? TOOL_PROMPT + builtIn * BUILT_IN_TOOL : 0;
  const { messages, system, output_config: config } = body;
  return prompt + sum([system, messages, body.tools, config].map((one) => partTokens(one, world)));
}

function partTokens(part: Json | undefined, world: World): number {
  const { sizes = {}, imageTokens = 1_600, tokensPerByte = 0.25 } = world;
  if (typeof part === "string") return Math.ceil(new TextEncoder().encode(part).length * tokensPerByte);
  if (Array.isArray(part)) return sum(part.map((one) => partTokens(one as Json, world)));
  if (!isJsonObject(part)) return part === undefined || part === null ? 0 : 1;
  const { source } = part;
  if (isJsonObject(source)) {
    if (source.type === "url") return sizes[String(source.url)] ?? 1_000;
    if (source.type === "file") return sizes[String(source.file_id)] ?? 1_000;
    if (source.type === "base64")
      return part.type === "document" ? pagesOf(String(source.data)) * imageTokens : imageTokens;
  }
  // What the model thought is read again whole, however little of it is shown.
  if (part.type === "thinking") return Number(/^(\d+)/.exec(String(part.signature))?.[1] ?? 0);
  return sum(Object.entries(part).map(([name, value]) => partTokens(name, world) + partTokens(value, world)));
}

/** A PDF of the tests says its pages in clear text. */
const pagesOf = (data: string) => Number(/pages (\d+)/.exec(atob(data))?.[1] ?? 1);

const sum = (numbers: readonly number[]) => numbers.reduce((total, one) => total + one, 0);
