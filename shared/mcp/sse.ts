import { ToolError } from "../errors/errors.ts";
import { isJsonObject, type JsonObject } from "../values/json.ts";

/** The JSON-RPC messages of an answer, which is one, or a stream of events. Throws when it is larger than that. */
export async function* messagesOf(response: Response, largest: number): AsyncGenerator<JsonObject> {
  const isStream = /^text\/event-stream\b/.test(response.headers.get("content-type") ?? "");
  let text = "";
  for await (const more of textsOf(response, largest)) {
    text += more;
    if (!isStream) continue;
    const events = text.split(/\r?\n\r?\n/);
    text = events.pop() ?? "";
    for (const event of events) yield* messageOfEvent(event);
  }
  if (isStream) yield* messageOfEvent(text);
  else yield* parsed(text);
}

async function* textsOf({ body }: Response, largest: number): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let bytes = 0;
  const reader = body?.getReader();
  try {
    for (;;) {
      const { done, value } = (await reader?.read()) ?? { done: true };
      if (done || !value) break;
      bytes += value.length;
      if (bytes > largest) throw new ToolError(`The answer has more than ${largest} bytes`);
      yield decoder.decode(value, { stream: true });
    }
  } finally {
    await reader?.cancel().catch(() => {});
  }
}

function* messageOfEvent(event: string): Generator<JsonObject> {
  const data = event
    .split(/\r?\n/)
    .filter((line) => line.startsWith("data:"))
    .map((line) => line.slice(5).replace(/^ /, ""));
  if (data.length > 0) yield* parsed(data.join("\n"));
}

function* parsed(text: string): Generator<JsonObject> {
  if (text.trim() === "") return;
  const value: unknown = JSON.parse(text);
  for (const one of Array.isArray(value) ? value : [value]) if (isJsonObject(one)) yield one;
}
