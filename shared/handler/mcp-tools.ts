import type { Tool } from "../agent.ts";
import { askedOf } from "../journal/asked.ts";
import type { McpServer, McpTool } from "../mcp/mcp.ts";
import { isJsonObject, type Json, type JsonObject } from "../values/json.ts";
import type { Scene } from "./scene.ts";
import { runStep } from "./step.ts";

type Given = Tool | McpServer | JsonObject;

/** The tools of a conversation, with those of servers in their place: each list is journaled, so that a replay sees the same. */
export async function withServers(
  scene: Scene,
  name: string,
  tools: readonly Given[],
): Promise<(Tool | JsonObject)[]> {
  const all: (Tool | JsonObject)[] = [];
  // One after the other, in the order in which they are given: the same on every run.
  for (const tool of tools) all.push(...(isServer(tool) ? await toolsOf(scene, name, tool) : [tool]));
  return all;
}

export function isServer(tool: Given): tool is McpServer {
  return isJsonObject(tool) && "kind" in tool && tool.kind === "pawl.mcp";
}

async function toolsOf(scene: Scene, name: string, server: McpServer): Promise<Tool[]> {
  const list = () => server.list(scene.signal);
  const listed = await runStep(scene, `${name}/mcp ${server.name}`.slice(0, 128), list, () =>
    askedOf("", true),
  );
  return (listed as unknown as McpTool[]).map((tool) => toolOf(scene, server, tool));
}

function toolOf(
  { signal }: Scene,
  server: McpServer,
  { name, description, inputSchema, readOnly }: McpTool,
): Tool {
  return {
    name: `${server.name}_${name}`.replaceAll(/[^\w-]/g, "_").slice(0, 64),
    description,
    inputSchema,
    // What fits its schema is the server's to say.
    input: {
      "~standard": {
        version: 1,
        vendor: "pawl",
        validate: (value) =>
          isJsonObject(value) ? { value } : { issues: [{ message: "it should be an object" }] },
      },
    },
    readOnly,
    honoursKey: server.honoursKey.includes(name),
    ...(server.approve.includes(name) && { approve: true as const }),
    run: (input: Json, key: string) => server.call(name, input, key, signal),
  };
}
