import { BaseAnthropic } from "@anthropic-ai/sdk/client";
import { APIError } from "@anthropic-ai/sdk/error";
import { BetaMessageStream } from "@anthropic-ai/sdk/lib/BetaMessageStream";
import { Messages } from "@anthropic-ai/sdk/resources/messages";
import { messageOf } from "../errors/errors.ts";
import type { Usage } from "../journal/usage.ts";
import { type Model, ModelError, spokenIn, type Turn, type TurnRequest } from "../ports/model.ts";
import { isJsonObject, type JsonObject } from "../values/json.ts";

export interface AnthropicOptions {
  readonly apiKey: string;
  readonly baseUrl?: string;
  /** A stream that says nothing for this long is given up, in milliseconds. Each event starts the clock again. */
  readonly silence?: number;
}

const SILENCE = 120_000;
/** The API's words for a prompt that is too long, which it says as an ordinary bad request. */
const TOO_LONG = /prompt is too long|exceed context limit|context window/i;

/** What the counting endpoint takes of a request. */
const COUNTED = [
  ...["model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control"],
  ...["speed", "mcp_servers", "context_management"],
];

/** Anthropic's Messages API, streamed, so that an answer may take longer than a request. Retries are the caller's. */
export function anthropic(options: AnthropicOptions): Model {
  return {
    turn: (request, signal, begun) =>
      asked(options, request, signal, async (messages, given, heard) => {
        const { betas: _, ...body } = request;
        // That of the betas also reads the blocks which the other one drops: compaction, MCP.
        const stream = BetaMessageStream.createMessage(messages as never, body as never, given);
        begun?.(() => spokenIn(stream.currentMessage?.content ?? []));
        let usage: Usage | undefined;
        stream.on("streamEvent", (event) => {
          heard.isBegun = true;
          // As it is said: the client keeps only those figures that it knows.
          if (event.type === "message_start") usage = plain(event.message.usage);
          if (event.type === "message_delta") usage = { ...usage, ...said(plain(event.usage)) } as Usage;
        });
        const message = await stream.finalMessage();
        const requestId = stream.request_id;
        return {
          content: message.content as unknown as JsonObject[],
          stopReason: message.stop_reason ?? "end_turn",
          usage: usage ?? (plain(message.usage) as Usage),
          model: message.model,
          id: message.id,
          ...(requestId && { requestId }),
          ...(message.container && { container: message.container.id }),
          ...(message.stop_details && { stopDetails: plain<JsonObject>(message.stop_details) }),
        } satisfies Turn;
      }),
    count: (request, signal) =>
      asked(options, request, signal, async (messages, given) => {
        const body = Object.fromEntries(
          COUNTED.flatMap((name) => (name in request ? [[name, request[name]]] : [])),
        );
        return (await messages.countTokens(body as never, given)).input_tokens;
      }),
  };
}

const plain = <T>(value: unknown) => JSON.parse(JSON.stringify(value)) as T;
const said = (usage: JsonObject) =>
  Object.fromEntries(Object.entries(usage).filter(([, value]) => value !== null));

interface Given {
  readonly signal: AbortSignal;
  readonly headers: Record<string, string>;
}

interface Heard {
  /** The API has begun to answer: something may have been made. */
  isBegun: boolean;
}

async function asked<T>(
  { apiKey, baseUrl, silence = SILENCE }: AnthropicOptions,
  { betas = [] }: TurnRequest,
  signal: AbortSignal,
  ask: (messages: Messages, given: Given, heard: Heard) => Promise<T>,
): Promise<T> {
  const quiet = new AbortController();
  const heard: Heard = { isBegun: false };
  let timer: ReturnType<typeof setTimeout> | undefined;
  const listen = () => {
    clearTimeout(timer);
    timer = setTimeout(() => quiet.abort(), silence);
  };
  // Pings count too, which the client keeps to itself: a model may think for minutes and send nothing else.
  const listening: typeof fetch = async (...args) => {
    // The client has taken its time until here: if the process was frozen meanwhile, another one asks by now.
    signal.throwIfAborted();
    const response = await fetch(...args);
    heard.isBegun ||= response.ok;
    const ear = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        listen();
        controller.enqueue(chunk);
      },
    });
    return response.body ? new Response(response.body.pipeThrough(ear), response) : response;
  };
  const address = baseUrl && { baseURL: baseUrl };
  const client = new BaseAnthropic({
    apiKey,
    maxRetries: 0,
    timeout: silence,
    fetch: listening,
    ...address,
  });
  try {
    listen();
    const either = AbortSignal.any([signal, quiet.signal]);
    const headers: Record<string, string> = betas.length > 0 ? { "anthropic-beta": betas.join(",") } : {};
    // Only what is needed of the client: the whole of it would double a Worker's bundle.
    return await ask(new Messages(client as never), { signal: either, headers }, heard);
  } catch (error) {
    throw modelError(error, heard.isBegun, signal);
  } finally {
    clearTimeout(timer);
  }
}

/** What the API answered instead of a turn. Free is only what it refused itself, before it had begun to answer. */
function modelError(error: unknown, isBegun: boolean, signal: AbortSignal): unknown {
  const cause = { cause: error };
  if (signal.aborted)
    return new ModelError("model_unavailable", "The call was aborted", { isFree: false, ...cause });
  if (!(error instanceof Error)) return error;
  const status = error instanceof APIError ? error.status : undefined;
  const reason = messageOf(error).slice(0, 500);
  // A connection that was never made cost nothing, but that can't be told from one that was cut.
  if (status === undefined || isBegun)
    return new ModelError("model_unavailable", `The model's stream was cut: ${reason}`, {
      isFree: false,
      ...cause,
    });
  if ([408, 409, 429].includes(status) || status >= 500) {
    const after = retryAfter((error as APIError).headers);
    // Whatever stands between may time out on an answer that is being made: its page is not the API's own error.
    const isFree = isApisOwn((error as APIError).error);
    const more = { isFree, ...(after !== undefined && { after }), ...cause };
    return new ModelError("model_unavailable", `The model's API answered ${status}: ${reason}`, more);
  }
  const code = TOO_LONG.test(reason) ? "model_context" : "model_invalid";
  return new ModelError(code, `The model's API answered ${status}: ${reason}`, { isFree: true, ...cause });
}

const isApisOwn = (body: unknown) => isJsonObject(body) && body.type === "error";

function retryAfter(headers: Headers | undefined): number | undefined {
  const text = headers?.get("retry-after");
  if (!text) return undefined;
  const seconds = Number(text);
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}
