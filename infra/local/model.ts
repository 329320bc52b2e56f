import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Message } from "@anthropic-ai/sdk/resources/messages";
import type { Usage } from "../../shared/journal/usage.ts";
import type { Json, JsonObject } from "../../shared/values/json.ts";
import { eventsOf } from "./messages/events.ts";
import { billOf, countOf, usageOf } from "./messages/meter.ts";
import { refusalOf } from "./messages/refusals.ts";
import type { World } from "./messages/tokens.ts";

/** What the stand-in answers. */
export type Reply =
  | {
      readonly content: readonly JsonObject[];
      readonly stopReason?: string;
      readonly usage?: Partial<Usage>;
      /** Of a refusal. */
      readonly stopDetails?: JsonObject;
      /** The id of the container that its tools ran in. */
      readonly container?: string;
      /** Before the first event, in milliseconds. */
      readonly delay?: number;
      /** Before every other event, in milliseconds. */
      readonly pause?: number;
      /** The connection is cut after so many events. */
      readonly cutAfter?: number;
      /** Nothing more is said after so many events, and the connection stays open. */
      readonly stallAfter?: number;
    }
  | {
      readonly status: number;
      readonly headers?: Record<string, string>;
      readonly message?: string;
      /** Of something between: a page instead of the API's own error. */
      readonly page?: string;
    };

/** `caller`: what stands in the address before /v1/messages, for a script that serves several. */
export type Script = (request: JsonObject, count: number, caller: string) => Reply | Promise<Reply>;

export interface LocalModel extends AsyncDisposable {
  /** For ANTHROPIC_BASE_URL. */
  readonly url: string;
  /** Every request, in the order of arrival: whether its answer was sent to the end, or its caller hung up before. */
  readonly requests: {
    readonly body: JsonObject;
    done: boolean;
    hungUp: boolean;
    betas: readonly string[];
  }[];
  /** What was asked to be counted. */
  readonly counted: readonly JsonObject[];
  /** What it has charged, in dollars: for every answer that it began, whoever heard it. */
  readonly bill: () => number;
}

export const text = (words: string): Reply => ({ content: [{ type: "text", text: words }] });

/** A local server that speaks the Messages API, streamed or not, from a script: for where there is no key. */
export async function startModel(script: Script, world: World = {}): Promise<LocalModel> {
  const requests: LocalModel["requests"] = [];
  const counted: JsonObject[] = [];
  let bill = 0;
  const server = createServer(async (request, response) => {
    const [, caller, counts] =
      /^\/?([^/]*)\/v1\/messages(\/count_tokens)?(?:\?.*)?$/.exec(request.url ?? "") ?? [];
    if (request.method !== "POST" || caller === undefined) return refuse(response, 404, "not_found_error");
    const sent = await read(request).catch(() => undefined);
    // Its caller died in the middle of asking.
    if (sent === undefined) return;
    const body = JSON.parse(sent) as JsonObject;
    const betas = String(request.headers["anthropic-beta"] ?? "")
      .split(",")
      .filter(Boolean);
    const refusal = refusalOf(body, betas, world);
    if (counts) {
      counted.push(body);
      if (refusal) return refuse(response, 400, "invalid_request_error", refusal);
      return void whole(response, { ...countOf(body, world) }, {});
    }
    const entry = { body, done: false, hungUp: false, betas };
    requests.push(entry);
    response.on("close", () => {
      entry.hungUp = !response.writableEnded;
    });
    const count = requests.length;
    if (refusal) return refuse(response, 400, "invalid_request_error", refusal);
    const reply = await script(body, count, caller);
    if ("status" in reply && reply.page !== undefined)
      return void response.writeHead(reply.status, { "content-type": "text/html" }).end(reply.page);
    if ("status" in reply) return refuse(response, reply.status, "api_error", reply.message, reply.headers);
    await new Promise((resolve) => setTimeout(resolve, reply.delay ?? 0));
    const answer = message(body, reply, count, world);
    bill += billOf(String(body.model), answer.usage as unknown as Usage);
    const headers = { "request-id": `req_${count}` };
    entry.done = body.stream
      ? await stream(response, answer, reply, headers)
      : whole(response, answer, headers);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  server.unref();
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    counted,
    bill: () => bill,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

type Answer = Extract<Reply, { content: unknown }>;

function message(body: JsonObject, reply: Answer, count: number, world: World): JsonObject {
  const { content, stopReason = "end_turn" } = reply;
  const usage = { ...usageOf(body, content, world), ...reply.usage };
  return {
    id: `msg_${count}`,
    type: "message",
    role: "assistant",
    model: body.model ?? "",
    content: [...content],
    stop_reason: stopReason,
    stop_sequence: null,
    ...(reply.stopDetails && { stop_details: reply.stopDetails }),
    ...(reply.container && { container: { id: reply.container, expires_at: "2026-12-01T00:00:00Z" } }),
    usage: usage as unknown as JsonObject,
  } satisfies Partial<Record<keyof Message, Json>>;
}

function whole(response: ServerResponse, message: JsonObject, headers: Record<string, string>): boolean {
  response.writeHead(200, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(message));
  return true;
}

async function stream(
  response: ServerResponse,
  message: JsonObject,
  reply: Answer,
  headers: Record<string, string>,
): Promise<boolean> {
  response.writeHead(200, { "content-type": "text/event-stream", ...headers });
  for (const [i, event] of eventsOf(message).entries()) {
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
