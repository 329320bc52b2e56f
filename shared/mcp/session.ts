import { messageOf, PawlError, Retry, ToolError } from "../errors/errors.ts";
import { isJsonObject, type JsonObject } from "../values/json.ts";
import { messagesOf } from "./sse.ts";

export interface SessionOptions {
  readonly name: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeout: number;
}

interface More {
  readonly signal: AbortSignal;
  readonly key?: string;
}

export interface Session {
  request(method: string, params: JsonObject, more: More): Promise<JsonObject>;
}

const REVISION = "2025-11-25";
/** JSON-RPC's words for a request that was not understood, and so not done. */
const NOT_DONE = new Set([-32700, -32600, -32601, -32602]);
const LARGEST = 4 * 1024 * 1024;
/** When to try again what was not begun, in milliseconds. */
const AGAIN = 10_000;

/** What the server gave when it was greeted. */
interface Greeted {
  readonly revision: string;
  readonly id?: string;
}

class Over extends Error {}

/**
 * A session of one process, greeted when it is first needed. What is thrown says what is known: `ToolError`, the server did
 * not do it, and the model may hear why; `Retry`, nothing was sent; `mcp_unavailable`, it may have been done.
 */
export function sessionOf(options: SessionOptions): Session {
  const { name } = options;
  let greeted: Promise<Greeted> | undefined;
  let ids = 0;
  const ask = (method: string, params: JsonObject, more: More, at?: Greeted) => {
    const id = ++ids;
    return post(options, { jsonrpc: "2.0", id, method, params }, more, at, id);
  };
  const greet = async (more: More): Promise<Greeted> => {
    const clientInfo = { name: "pawl", version: "1" };
    const params = { protocolVersion: REVISION, capabilities: {}, clientInfo };
    const { result, headers } = await ask("initialize", params, { signal: more.signal });
    const id = headers.get("mcp-session-id") ?? undefined;
    const at = { revision: String(result.protocolVersion ?? REVISION), ...(id !== undefined && { id }) };
    await post(options, { jsonrpc: "2.0", method: "notifications/initialized" }, { signal: more.signal }, at);
    return at;
  };
  /** Whatever goes wrong here, the call itself was not sent. */
  const open = async (more: More): Promise<Greeted> => {
    greeted ??= greet(more);
    try {
      return await greeted;
    } catch (error) {
      greeted = undefined;
      more.signal.throwIfAborted();
      if (error instanceof ToolError)
        throw new PawlError("mcp_invalid", `MCP server ${name} did not open a session: ${error.message}`);
      throw new Retry(`MCP server ${name} did not open a session: ${messageOf(error)}`, AGAIN);
    }
  };
  return {
    request: async (method, params, more) => {
      for (let again = false; ; again = true) {
        const at = await open(more);
        try {
          return (await ask(method, params, more, at)).result;
        } catch (error) {
          // The server has forgotten the session, and so did nothing.
          if (!(error instanceof Over)) throw error;
          greeted = undefined;
          if (again) throw new Retry(`MCP server ${name} forgets its sessions at once`, AGAIN);
        }
      }
    },
  };
}

async function post(
  { name, url, headers, timeout }: SessionOptions,
  message: JsonObject,
  { signal, key }: More,
  at?: Greeted,
  id?: number,
): Promise<{ result: JsonObject; headers: Headers }> {
  const unknown = (what: string, cause?: unknown) =>
    new PawlError("mcp_unavailable", `MCP server ${name} ${what}`, cause === undefined ? {} : { cause });
  const late = AbortSignal.timeout(timeout);
  try {
    const response = await fetch(url, {
      method: "POST",
      // Nobody else is given its key.
      redirect: "manual",
      headers: {
        ...headers,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...(at && { "mcp-protocol-version": at.revision }),
        ...(at?.id !== undefined && { "mcp-session-id": at.id }),
        ...(key && { "idempotency-key": key }),
      },
      body: JSON.stringify(message),
      signal: AbortSignal.any([signal, late]),
    });
    const { status } = response;
    if (status === 404 && at?.id !== undefined) throw new Over();
    if (status >= 500) throw unknown(`answered ${status}`);
    if (status === 429 || status === 408) throw new Retry(`MCP server ${name} answered ${status}`, AGAIN);
    if (!response.ok) throw new ToolError(`MCP server ${name} answered ${status}`);
    if (id === undefined) return { result: {}, headers: response.headers };
    // What the server itself asks has a method, and ids of its own.
    for await (const one of messagesOf(response, LARGEST))
      if (one.id === id && one.method === undefined)
        return { result: resultOf(name, one, unknown), headers: response.headers };
    throw unknown("ended its answer without one");
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    if (error instanceof PawlError || error instanceof ToolError || error instanceof Over) throw error;
    throw unknown(
      late.aborted ? `did not answer within ${timeout} ms` : `can't be reached: ${messageOf(error)}`,
      error,
    );
  }
}

function resultOf(name: string, { error, result }: JsonObject, unknown: (what: string) => Error): JsonObject {
  if (isJsonObject(error)) {
    const words = `${String(error.code)}: ${String(error.message).slice(0, 1_000)}`;
    if (NOT_DONE.has(Number(error.code))) throw new ToolError(`MCP server ${name} refused. ${words}`);
    throw unknown(`failed with ${words}`);
  }
  if (!isJsonObject(result)) throw unknown("answered without a result");
  return result;
}
