import { PawlError, ToolError } from "../errors/errors.ts";
import { byteLength, isJsonObject, type Json, type JsonObject } from "../values/json.ts";
import { contentOf } from "./content.ts";
import { sessionOf } from "./session.ts";

/** A server whose tools a model may use. */
export interface McpDefinition {
  /** What its tools are called by: "crm" makes `crm_find`. 1 to 20 of a-z 0-9 -. */
  readonly name: string;
  /** Where it is, by streamable HTTP. */
  readonly url: string;
  /** Sent with every request, such as its key. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The tools that the model may use, by the server's own names: it sees no others. */
  readonly tools: readonly string[];
  /** Of these, the ones of which the server does at most one thing per key: it is sent as `idempotency-key`. */
  readonly honoursKey?: readonly string[];
  /** The ones that ask a person first. */
  readonly approve?: readonly string[];
  /** How long one call may take, in milliseconds. 60000 by default. */
  readonly timeout?: number;
}

/** A tool as the journal keeps it: a handler that starts anew sees the same. */
export interface McpTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  /** By the server's own word, `readOnlyHint`. */
  readonly readOnly: boolean;
}

/** A server, checked. Made by `mcp({…})`, for the `tools` of `llm`. */
export interface McpServer {
  readonly kind: "pawl.mcp";
  readonly name: string;
  readonly honoursKey: readonly string[];
  readonly approve: readonly string[];
  /** What is allowed of what it has. Throws `mcp_invalid` where something allowed is not there. */
  readonly list: (signal: AbortSignal) => Promise<McpTool[]>;
  /** `key`: an effect's. */
  readonly call: (tool: string, input: Json, key: string, signal: AbortSignal) => Promise<unknown>;
}

const MOST_PAGES = 20;
const DESCRIPTION_KEPT = 4_000;
const SCHEMA_BYTES = 32_768;
const TIMEOUT = 60_000;

/** Tools of an MCP server, for `llm`: those that only read are steps, all others effects. Throws `agent_invalid` where a field is wrong. */
export function mcp(definition: McpDefinition): McpServer {
  const { name, url, headers = {}, tools, honoursKey = [], approve = [], timeout = TIMEOUT } = definition;
  const wrong = (what: string) => new PawlError("agent_invalid", `mcp ${JSON.stringify(name)}: ${what}`);
  if (!/^[a-z0-9-]{1,20}$/.test(name)) throw wrong("its name should be 1 to 20 of a-z 0-9 -");
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw wrong("url should be an http address");
  if (!Array.isArray(tools) || tools.length === 0) throw wrong("tools should name what the model may use");
  const stray = [...honoursKey, ...approve].find((one) => !tools.includes(one));
  if (stray !== undefined) throw wrong(`${JSON.stringify(stray)} is not among its tools`);
  const session = sessionOf({ name, url, headers, timeout });
  return {
    kind: "pawl.mcp",
    name,
    honoursKey,
    approve,
    list: async (signal) => {
      const found = new Map<string, JsonObject>();
      let cursor: Json | undefined;
      for (let page = 0; page < MOST_PAGES; page++) {
        const params = cursor === undefined ? {} : { cursor };
        const listed = await session.request("tools/list", params, { signal }).catch((error: unknown) => {
          throw error instanceof ToolError ? new PawlError("mcp_invalid", error.message) : error;
        });
        for (const tool of Array.isArray(listed.tools) ? listed.tools.filter(isJsonObject) : [])
          found.set(String(tool.name), tool);
        cursor = listed.nextCursor;
        if (typeof cursor !== "string") break;
      }
      return tools.map((tool) => checked(name, tool, found));
    },
    call: async (tool, input, key, signal) =>
      contentOf(await session.request("tools/call", { name: tool, arguments: input }, { signal, key })),
  };
}

function checked(server: string, name: string, found: ReadonlyMap<string, JsonObject>): McpTool {
  const wrong = (what: string) => new PawlError("mcp_invalid", `MCP server ${server} ${what}`);
  const tool = found.get(name);
  if (!tool) {
    const named = [...found.keys()].slice(0, 20).map((one) => JSON.stringify(one.slice(0, 60)));
    throw wrong(`has no tool ${JSON.stringify(name)}. It has ${named.join(", ") || "none"}`);
  }
  const { description, inputSchema, annotations } = tool;
  if (!isJsonObject(inputSchema) || inputSchema.type !== "object")
    throw wrong(`says of tool ${JSON.stringify(name)} no inputSchema of an object`);
  const bytes = byteLength(JSON.stringify(inputSchema));
  if (bytes > SCHEMA_BYTES)
    throw wrong(
      `has an inputSchema of ${bytes} bytes for tool ${JSON.stringify(name)}; ${SCHEMA_BYTES} is the most`,
    );
  return {
    name,
    description: String(description ?? "")
      .slice(0, DESCRIPTION_KEPT)
      .toWellFormed(),
    inputSchema,
    readOnly: isJsonObject(annotations) && annotations.readOnlyHint === true,
  };
}
