import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Usage } from "../../shared/journal/prices.ts";
import type { JsonObject } from "../../shared/values/json.ts";

/** What the stand-in answers. */
export type Reply =
  | {
      readonly content: readonly JsonObject[];
      readonly stopReason?: string;
      readonly usage?: Partial<Usage>;
      /** Before the first event, in milliseconds. */
      readonly delay?: number;
      /** Before every other event, in milliseconds. */
      readonly pause?: number;
      /** The connection is cut after so many events. */
      readonly cutAfter?: number;
      /** Nothing more is said after so many events, and the connection stays open. */
      readonly stallAfter?: number;
    }
  | { readonly status: number; readonly headers?: Record<string, string>; readonly message?: string };

/** `caller`: what stands in the address before /v1/messages, for a script that serves several. */
export type Script = (request: JsonObject, count: number, caller: string) => Reply | Promise<Reply>;

export interface LocalModel extends AsyncDisposable {
  /** For ANTHROPIC_BASE_URL. */
  readonly url: string;
  /** Every request, in the order of arrival: whether its answer was sent to the end, or its caller hung up before. */
  readonly requests: { readonly body: JsonObject; done: boolean; hungUp: boolean }[];
}

export const text = (words: string): Reply => ({ content: [{ type: "text", text: words }] });

/** A local server that speaks the Messages API, streamed or not, from a script: for where there is no key. */
export async function startModel(script: Script): Promise<LocalModel> {
  const requests: LocalModel["requests"] = [];
  const server = createServer(async (request, response) => {
    const [, caller] = /^\/?([^/]*)\/v1\/messages$/.exec(request.url ?? "") ?? [];
    if (request.method !== "POST" || caller === undefined) return refuse(response, 404, "not_found_error");
    const sent = await read(request).catch(() => undefined);
    // Its caller died in the middle of asking.
    if (sent === undefined) return;
    const body = JSON.parse(sent) as JsonObject;
    const entry = { body, done: false, hungUp: false };
    requests.push(entry);
    response.on("close", () => {
      entry.hungUp = !response.writableEnded;
    });
    const reply = await script(body, requests.length, caller);
    if ("status" in reply) return refuse(response, reply.status, "api_error", reply.message, reply.headers);
    await new Promise((resolve) => setTimeout(resolve, reply.delay ?? 0));
    entry.done = body.stream
      ? await stream(response, body, reply, requests.length)
      : whole(response, body, reply, requests.length);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

type Answer = Extract<Reply, { content: unknown }>;

function message(body: JsonObject, reply: Answer, count: number): JsonObject {
  const output = JSON.stringify(reply.content).length;
  return {
    id: `msg_${count}`,
    type: "message",
    role: "assistant",
    model: body.model ?? "",
    content: [...reply.content],
    stop_reason: reply.stopReason ?? "end_turn",
    stop_sequence: null,
    usage: {
      input_tokens: Math.ceil(JSON.stringify(body.messages).length / 4),
      output_tokens: Math.ceil(output / 4),
      cache_read_input_tokens: 0,
      cache_creation_input_tokens: 0,
      ...(reply.usage as JsonObject),
    },
  };
}

function whole(response: ServerResponse, body: JsonObject, reply: Answer, count: number): boolean {
  response.writeHead(200, { "content-type": "application/json", "request-id": `req_${count}` });
  response.end(JSON.stringify(message(body, reply, count)));
  return true;
}

async function stream(
  response: ServerResponse,
  body: JsonObject,
  reply: Answer,
  count: number,
): Promise<boolean> {
  const all = events(message(body, reply, count));
  response.writeHead(200, { "content-type": "text/event-stream", "request-id": `req_${count}` });
  for (const [i, event] of all.entries()) {
    if (i === reply.cutAfter) {
      response.destroy();
      return false;
    }
    if (i === reply.stallAfter) return false;
    if (i > 0 && reply.pause) await new Promise((resolve) => setTimeout(resolve, reply.pause));
    const sent = response.write(`event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`);
    if (!sent) await new Promise((resolve) => response.once("drain", resolve));
  }
  response.end();
  return true;
}

/** A message as the events that make it up, its texts and inputs in two pieces each. */
function events(whole: JsonObject): JsonObject[] {
  const { content, stop_reason, usage, ...rest } = whole as JsonObject & {
    content: JsonObject[];
    usage: JsonObject;
  };
  const blocks = content.flatMap((block, index): JsonObject[] => {
    const isText = block.type === "text";
    const value = isText ? String(block.text) : JSON.stringify(block.input ?? {});
    const half = Math.ceil(value.length / 2);
    const deltas = [value.slice(0, half), value.slice(half)].map((piece) =>
      isText ? { type: "text_delta", text: piece } : { type: "input_json_delta", partial_json: piece },
    );
    return [
      {
        type: "content_block_start",
        index,
        content_block: isText ? { type: "text", text: "" } : { ...block, input: {} },
      },
      ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
      { type: "content_block_stop", index },
    ];
  });
  const start = { ...rest, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } };
  return [
    { type: "message_start", message: start },
    ...blocks,
    { type: "message_delta", delta: { stop_reason: stop_reason ?? null, stop_sequence: null }, usage },
    { type: "message_stop" },
  ];
}

function refuse(
  response: ServerResponse,
  status: number,
  type: string,
  words = `refused with ${status}`,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify({ type: "error", error: { type, message: words } }));
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
