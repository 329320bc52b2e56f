import { BaseAnthropic } from "@anthropic-ai/sdk/client";
import { APIConnectionError, APIError, APIUserAbortError } from "@anthropic-ai/sdk/error";
import { Messages } from "@anthropic-ai/sdk/resources/messages";
import { messageOf } from "../errors/errors.ts";
import { type Model, ModelError, type Turn, type TurnRequest } from "../ports/model.ts";
import type { JsonObject } from "../values/json.ts";

export interface AnthropicOptions {
  readonly apiKey: string;
  readonly baseUrl?: string;
  /** A stream that says nothing for this long is given up, in milliseconds. Each event starts the clock again. */
  readonly silence?: number;
}

const SILENCE = 120_000;
/** The API's words for a prompt that is too long, which it says as an ordinary bad request. */
const TOO_LONG = /prompt is too long|exceed context limit|context window/i;

/** Anthropic's Messages API, streamed, so that an answer may take longer than a request. Retries are the caller's. */
export function anthropic({ apiKey, baseUrl, silence = SILENCE }: AnthropicOptions): Model {
  return {
    turn: async (request: TurnRequest, signal: AbortSignal): Promise<Turn> => {
      const quiet = new AbortController();
      let timer: ReturnType<typeof setTimeout> | undefined;
      let isBegun = false;
      const heard = () => {
        clearTimeout(timer);
        timer = setTimeout(() => quiet.abort(), silence);
      };
      // Pings count too, which the client keeps to itself: a model may think for minutes and send nothing else.
      const listening: typeof fetch = async (...args) => {
        const response = await fetch(...args);
        const ear = new TransformStream<Uint8Array, Uint8Array>({
          transform: (chunk, controller) => {
            heard();
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
      // Only what is needed of the client: the whole of it would double a Worker's bundle.
      const messages = new Messages(client as never);
      try {
        heard();
        const options = { signal: AbortSignal.any([signal, quiet.signal]) };
        const stream = messages.stream(request as never, options);
        stream.on("streamEvent", () => {
          isBegun = true;
        });
        const message = await stream.finalMessage();
        const requestId = stream.request_id;
        return {
          content: message.content as unknown as JsonObject[],
          stopReason: message.stop_reason ?? "end_turn",
          usage: JSON.parse(JSON.stringify(message.usage)) as Turn["usage"],
          model: message.model,
          ...(requestId && { requestId }),
        };
      } catch (error) {
        throw modelError(error, isBegun, signal);
      } finally {
        clearTimeout(timer);
      }
    },
  };
}

/** What the API answered instead of a turn. Until the first event nothing was made; after it nobody knows. */
function modelError(error: unknown, isBegun: boolean, signal: AbortSignal): unknown {
  const cause = { cause: error };
  if (signal.aborted)
    return new ModelError("model_unavailable", "The call was aborted", { isFree: false, ...cause });
  if (!(error instanceof APIError) && !isBegun && !(error instanceof Error)) return error;
  const status = error instanceof APIError ? error.status : undefined;
  const reason = messageOf(error).slice(0, 500);
  const isCut = isBegun || error instanceof APIUserAbortError || error instanceof APIConnectionError;
  if (status === undefined || isBegun) {
    // A connection that was never made cost nothing, but that can't be told from one that was cut.
    return new ModelError("model_unavailable", `The model's stream was cut: ${reason}`, {
      isFree: !isCut,
      ...cause,
    });
  }
  if ([408, 409, 429].includes(status) || status >= 500) {
    const after = retryAfter((error as APIError).headers);
    const more = { isFree: true, ...(after !== undefined && { after }), ...cause };
    return new ModelError("model_unavailable", `The model's API answered ${status}: ${reason}`, more);
  }
  const code = TOO_LONG.test(reason) ? "model_context" : "model_invalid";
  return new ModelError(code, `The model's API answered ${status}: ${reason}`, { isFree: true, ...cause });
}

function retryAfter(headers: Headers | undefined): number | undefined {
  const text = headers?.get("retry-after");
  if (!text) return undefined;
  const seconds = Number(text);
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}
