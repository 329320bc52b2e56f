import { expect, test } from "vitest";
import { NO_COST } from "../../shared/journal/cost.ts";
import type { Span, TracedCall } from "../../shared/ports/trace.ts";
import type { Running } from "../../shared/task/document.ts";
import { callTrace } from "../../shared/trace/calls.ts";
import type { Json } from "../../shared/values/json.ts";

const task = { id: "t", agent: "a", fence: 1, createdAt: 1, state: "running" } as Running;
const ids = { traceId: "1".repeat(32), life: "2".repeat(16), sampled: true };

/** The span of a call, in which whatever may be told is told. */
function told(of: Partial<TracedCall>, during: (trace: ReturnType<typeof callTrace>) => void): Span {
  const spans: Span[] = [];
  const call: TracedCall = { task, kind: "turn", key: "ask/turn 1#1", inner: false, ...of };
  const trace = callTrace(
    call,
    { ids, namespace: "n", content: true },
    () => 5,
    (span) => spans.push(span),
  );
  during(trace);
  trace.end();
  expect(spans).toHaveLength(1);
  return spans[0] as Span;
}

test.each([[null], [[null, 7]], ["text"], [[{ role: "user", content: [null] }]], [undefined]])(
  "messages that are none fail no turn: %j",
  (messages) => {
    const request = { model: "m", max_tokens: 1, messages: messages as Json };
    expect(told({}, (trace) => trace.asked(request, false)).name).toBe("chat m");
  },
);

test.each([
  [new Error("no"), "Error", "no"],
  [Object.assign(new Error("no"), { name: undefined }), "undefined", "no"],
  [undefined, "thrown", "undefined"],
  [Object.create(null), "thrown", undefined],
  [{ toString: () => Promise.reject.call(null) }, "thrown", undefined],
])("whatever is thrown fails the span, and nothing else: %#", (thrown, type, message) => {
  const { error } = told({ kind: "step", key: "read#1" }, (trace) => trace.failed(thrown));
  expect(error?.type).toBe(type);
  if (message !== undefined) expect(error?.message).toBe(message);
});

test("what a model was asked is bounded: the newest messages, and the beginning of each", () => {
  const content = "x".repeat(5_000);
  const blocks = Array.from({ length: 100 }, () => ({ type: "text", text: content }));
  const messages = Array.from({ length: 50 }, (_, i) => ({ role: "user", content: `${i} ${content}` }));
  const span = told({}, (trace) => {
    trace.asked({ model: "m", max_tokens: 1, messages, system: blocks }, false);
    trace.answered(
      {
        model: "m",
        stopReason: "end_turn",
        usage: { input_tokens: 1, output_tokens: 1 },
        content: blocks,
      },
      NO_COST,
    );
  });
  for (const name of ["gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions"])
    expect((span.attributes[name] as string).length, name).toBeLessThanOrEqual(8_000);
  const kept = JSON.parse(span.attributes["gen_ai.input.messages"] as string);
  expect(kept.at(-1).parts[0].content).toMatch(/^49 x+$/);
  expect(kept.length).toBeGreaterThan(3);
  expect(JSON.parse(span.attributes["gen_ai.output.messages"] as string)[0].parts.length).toBeGreaterThan(3);
});

test.each([
  ["step", "read#1", false, "step read"],
  ["step", "read#3", false, "step read#3"],
  ["effect", "ask/post/use_1#1", true, "execute_tool post"],
  ["effect", "a/b/c#1", false, "effect a/b/c"],
  ["wait", "publish#1", false, "wait publish"],
] as const)("%s %s is called %s", (kind, key, inner, name) => {
  expect(told({ kind, key, inner }, () => {}).name).toBe(name);
});
