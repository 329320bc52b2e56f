import { isPawlError, messageOf } from "../errors/errors.ts";
import type { CallTrace, Span, SpanValue, TracedCall } from "../ports/trace.ts";
import type { Millis } from "../task/document.ts";
import { sayTraceparent } from "../values/traceparent.ts";
import { answeredAs, askedAs } from "./genai.ts";
import { executionId, freshSpanId } from "./ids.ts";
import { type Telling, whose } from "./life.ts";

/** A tool's call is named by its conversation, its tool and the id that the model gave it. */
const TOOL = /^.*\/([\w-]+)\/([^/]+)#\d+$/;

/** Told when it ends: a call of a handler that is suspended in it, or dies, never does. */
export function callTrace(
  { task, kind, key, inner, known, redact = (text) => text }: TracedCall,
  { ids, namespace, content }: Telling,
  now: () => Millis,
  record: (span: Span) => void,
): CallTrace {
  const spanId = freshSpanId();
  const begun = now();
  const tool = inner && kind !== "turn" ? TOOL.exec(redact(key)) : null;
  let attributes: Record<string, SpanValue | undefined> = {
    ...whose(task),
    "pawl.call": redact(key),
    "pawl.fence": task.fence,
    ...(tool && {
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": tool[1],
      "gen_ai.tool.call.id": tool[2],
      "gen_ai.tool.type": "function",
    }),
  };
  let name = tool ? `execute_tool ${tool[1]}` : `${kind} ${redact(key).replace(/#1$/, "")}`;
  let error: Span["error"];
  /** Messages and errors are an author's, and may be anything: what can't be told must not fail a call. */
  const add = (more: () => typeof attributes) => {
    try {
      attributes = { ...attributes, ...more() };
    } catch {
      attributes["pawl.untold"] = true;
    }
  };
  return {
    traceparent: sayTraceparent({ traceId: ids.traceId, spanId, sampled: ids.sampled }),
    asked: (request, again) => {
      name = `chat ${request.model}`;
      add(() => askedAs(request, again, content ? redact : undefined));
    },
    answered: (turn, cost) => add(() => answeredAs(turn, cost, attributes, content ? redact : undefined)),
    failed: (thrown) =>
      add(() => {
        error = { type: "thrown" };
        const type = isPawlError(thrown) ? thrown.code : thrown instanceof Error ? thrown.name : "thrown";
        const message = content ? redact(messageOf(thrown)).slice(0, 500) : undefined;
        error = { type: redact(String(type)).slice(0, 100), ...(message !== undefined && { message }) };
        return {};
      }),
    end: () =>
      record({
        traceId: ids.traceId,
        spanId,
        // What a wait waited for spans executions.
        parentId: kind === "wait" ? ids.life : executionId(task, namespace),
        name,
        kind: kind === "turn" ? "client" : "internal",
        start: (kind === "wait" && known?.begun) || begun,
        end: now(),
        attributes,
        ...(error && { error }),
      }),
  };
}
