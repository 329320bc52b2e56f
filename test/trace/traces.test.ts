import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { Fatal, tool } from "../../shared/agent.ts";
import { redrive, signal } from "../../shared/dispatch/operate.ts";
import { ModelError } from "../../shared/ports/model.ts";
import { approvalSignal } from "../../shared/task/signals.ts";
import { asks, scripted } from "../../shared/testing/scripted-model.ts";
import { readTraceparent } from "../../shared/values/traceparent.ts";
import { agentOf } from "../support/bench.ts";
import type { Received } from "../support/http/otlp.ts";
import { testNats } from "../support/servers/stores.ts";
import { given, OUTSIDE, TRACE, tracedStage, tree } from "../support/tracing.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

describe("a task that asks a model, with a tool, an effect and a child", () => {
  const heard: Record<string, string | undefined> = {};
  const lookup = tool({
    name: "lookup",
    description: "Looks up",
    readOnly: true,
    input: z.object({ city: z.string() }),
    run: ({ city }, _key, { traceparent }) => {
      heard.tool = traceparent;
      return `secret weather of ${city}`;
    },
  });
  const agents = {
    parent: agentOf(async (context) => {
      const { step, effect, llm, submit } = context;
      heard.handler = context.traceparent;
      await step("read", () => {
        heard.step = context.traceparent;
        return "secret result";
      });
      await llm("ask", {
        model: "claude-sonnet-5-5",
        system: "secret system",
        prompt: "secret prompt",
        tools: [lookup],
      });
      await effect("post", {
        run: () => {
          heard.effect = context.traceparent;
        },
      });
      context.log("posted");
      await submit("child", { text: "secret input" }, { key: "one" });
      return "secret result";
    }),
    child: agentOf(() => "done"),
  };
  const script = [
    {
      ...(asks(["lookup", { city: "secret city" }]) as { content: [] }),
      usage: { input_tokens: 100, output_tokens: 10, cache_read_input_tokens: 900 },
    },
    "secret answer",
  ];
  const run = async (more: Record<string, string> = {}) => {
    const s = await tracedStage(nats, agents, more);
    const redact = (text: string) => text.replaceAll("secret city", "[gone]");
    Object.assign(s.deps, { model: scripted(script), redact });
    await s.submit("parent", "t", { text: "secret input" }, { traceparent: given });
    await s.drain("parent");
    await s.drain("child");
    return s;
  };

  test("is one trace, its submitter's, and says what each call was", async () => {
    await using s = await run();
    const { spans } = s.receiver;
    expect(new Set(spans.map(({ traceId }) => traceId))).toEqual(new Set([TRACE]));
    expect(tree(spans)).toEqual([
      "task parent",
      "  claim",
      "  dispatch",
      "  invoke_agent parent",
      "    chat claude-sonnet-5-5",
      "    chat claude-sonnet-5-5",
      "    effect post",
      "    execute_tool lookup",
      "    step read",
      "    step submit child one",
      "      task child",
      "        claim",
      "        dispatch",
      "        invoke_agent child",
      "        submit",
      "  submit",
    ]);
    const named = (name: string) => spans.find((span) => span.name === name) as Received;
    expect(named("task parent")).toMatchObject({ parentSpanId: OUTSIDE, failed: false, service: "pawl" });
    expect(named("task parent").attributes).toMatchObject({
      "pawl.task": "t",
      "pawl.state": "completed",
      "pawl.executions": 1,
      "pawl.turns": 2,
    });
    expect(named("chat claude-sonnet-5-5")).toMatchObject({
      kind: 3,
      attributes: {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-sonnet-5-5",
        "gen_ai.request.max_tokens": 8192,
        "gen_ai.response.finish_reasons": ["tool_use"],
        "gen_ai.usage.input_tokens": 1_000,
        "gen_ai.usage.output_tokens": 10,
        "gen_ai.usage.cache_read.input_tokens": 900,
        "pawl.usd": (100 * 2 + 900 * 2 * 0.05 + 10 * 10) / 1e6,
        "pawl.again": false,
      },
    });
    expect(named("execute_tool lookup").attributes).toMatchObject({
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "lookup",
      "gen_ai.tool.call.id": "use_1_lookup",
    });
    const task = (await s.deps.store.get("t"))?.task;
    expect(named("invoke_agent parent").attributes).toMatchObject({
      "gen_ai.agent.name": "parent",
      "pawl.usd": task?.spent.usd,
      "pawl.fence": 1,
      "pawl.ended_by": "complete",
    });
  });

  test("hands on which call asks, to the handler, its steps, effects and tools", async () => {
    await using s = await run();
    const spanOf = (name: string) => s.receiver.spans.find((span) => span.name === name)?.spanId;
    const told = Object.entries(heard).map(([who, header]) => [who, readTraceparent(header)?.spanId]);
    expect(Object.fromEntries(told)).toEqual({
      handler: spanOf("invoke_agent parent"),
      step: spanOf("step read"),
      tool: spanOf("execute_tool lookup"),
      effect: spanOf("effect post"),
    });
  });

  test("says nothing of inputs, prompts, answers and results, and its log says which trace it is", async () => {
    await using s = await run({ OTEL_EXPORTER_OTLP_HEADERS: "x-key=a%20key%20of%20mine" });
    expect(s.receiver.spans.length).toBeGreaterThan(10);
    expect(s.receiver.text()).not.toContain("secret");
    expect(s.receiver.headers[0]).toMatchObject({ "x-key": "a key of mine" });
    expect(JSON.stringify(s.deps.logged)).not.toContain("key of mine");
    const run1 = s.receiver.spans.find(({ name }) => name === "invoke_agent parent");
    const lines = s.deps.logged.filter(({ event }) => event === "agent.log" || event === "task.handled");
    expect(lines.map(({ fields }) => [fields.trace_id, fields.span_id])[0]).toEqual([TRACE, run1?.spanId]);
    expect(lines.every(({ fields }) => fields.trace_id === TRACE)).toBe(true);
  });

  test("says them where that is wanted: bounded, and without the agent's secrets", async () => {
    await using s = await run({ OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true" });
    expect(s.receiver.text()).not.toContain("secret city");
    const [first, second] = s.receiver.spans.filter(({ name }) => name.startsWith("chat"));
    expect(JSON.parse(first?.attributes["gen_ai.input.messages"] as string)).toEqual([
      { role: "user", parts: [{ type: "text", content: "secret prompt" }] },
    ]);
    expect(JSON.parse(first?.attributes["gen_ai.system_instructions"] as string)).toEqual([
      { type: "text", content: "secret system" },
    ]);
    const [, answer, result] = JSON.parse(second?.attributes["gen_ai.input.messages"] as string);
    expect(answer.parts).toEqual([
      { type: "tool_call", id: "use_1_lookup", name: "lookup", arguments: '{"city":"[gone]"}' },
    ]);
    expect(result.parts).toMatchObject([
      { type: "tool_call_response", response: "secret weather of [gone]" },
    ]);
    expect(JSON.parse(second?.attributes["gen_ai.output.messages"] as string)).toEqual([
      { role: "assistant", parts: [{ type: "text", content: "secret answer" }], finish_reason: "end_turn" },
    ]);
  });
});

test("a wait spans executions, and a redrive is another life in the same trace, linked to the one before", async () => {
  let tries = 0;
  const agent = agentOf(async ({ step, approval }) => {
    await step("prepare", () => 1);
    await approval("publish");
    if (++tries === 1) throw new Fatal("secret reason");
    return "done";
  });
  await using s = await tracedStage(nats, { tested: agent });
  await s.submit("tested", "t");
  await s.drain("tested");
  await signal(s.deps, "t", approvalSignal("publish"), { approved: true, by: "ann" });
  await s.drain("tested");
  await redrive(s.deps, "t");
  await s.drain("tested");
  const { spans } = s.receiver;
  expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
  expect(tree(spans)).toEqual([
    "task tested",
    "  claim",
    "  claim",
    "  dispatch",
    "  dispatch",
    "  invoke_agent tested",
    "    step prepare",
    "  invoke_agent tested",
    "  submit",
    "  wait publish",
    "  waiting",
    "task tested",
    "  claim",
    "  dispatch",
    "  invoke_agent tested",
  ]);
  const [first, second] = spans.filter(({ name }) => name === "task tested");
  expect(first).toMatchObject({ failed: true, parentSpanId: undefined, message: undefined, links: [] });
  expect(first?.attributes).toMatchObject({
    "error.type": "fatal",
    "pawl.state": "failed",
    "pawl.redrives": 0,
  });
  expect(second).toMatchObject({
    failed: false,
    links: [{ traceId: first?.traceId, spanId: first?.spanId }],
  });
  expect(second?.attributes["pawl.redrives"]).toBe(1);
  const runs = spans.filter(({ name }) => name === "invoke_agent tested");
  expect(runs.map(({ attributes }) => attributes["pawl.ended_by"])).toEqual(["wait", "fail", "complete"]);
  expect(s.receiver.text()).not.toContain("secret");
});

test("a turn that is asked again, since its answer was lost, says what was perhaps paid twice", async () => {
  const agent = agentOf(
    async ({ llm }) => (await llm("ask", { model: "claude-sonnet-5-5", prompt: "?" })).text,
  );
  await using s = await tracedStage(nats, { tested: agent });
  const model = scripted(["an answer", "an answer"]);
  let isCut = true;
  const turn: typeof model.turn = async (...args) => {
    if (!isCut) return model.turn(...args);
    isCut = false;
    throw new ModelError("model_unavailable", "secret words", { isFree: false, after: 1 });
  };
  Object.assign(s.deps, { model: { ...model, turn } });
  await s.submit("tested", "t");
  await s.drain("tested");
  const chat = await s.receiver.span("chat claude-sonnet-5-5");
  expect(chat.attributes).toMatchObject({
    "pawl.again": true,
    "pawl.respent_usd": chat.attributes["pawl.usd"],
  });
  expect(chat.attributes["pawl.usd"]).toBeGreaterThan(0);
});
