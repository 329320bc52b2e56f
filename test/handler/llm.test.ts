import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import { text } from "../../infra/local/model.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { Fatal, Retry, ToolError, tool } from "../../shared/agent.ts";
import { asking, lookup, MODEL, use, uses } from "../support/http/asking.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test("a question and its answer: journaled with usage, model, stop reason and request id", async () => {
  await using b = await asking(
    nats,
    () => ({ ...text("A catch."), usage: { input_tokens: 100, output_tokens: 50 } }),
    {
      system: "Be short.",
      maxTokens: 500,
      parameters: { stop_sequences: ["END"] },
    },
  );
  const task = await b.finish();
  expect(task).toMatchObject({
    state: "completed",
    result: { text: "A catch.", stopReason: "end_turn", model: MODEL },
    spent: { turns: 1, inputTokens: 100, outputTokens: 50, usd: (100 * 2 + 50 * 10) / 1e6 },
  });
  expect(b.model.requests[0]?.body).toMatchObject({
    model: MODEL,
    max_tokens: 500,
    system: "Be short.",
    stop_sequences: ["END"],
    stream: true,
    messages: [{ role: "user", content: "What is it?" }],
  });
  expect(await b.journal()).toMatchObject([
    { kind: "intent", of: "turn", key: "ask/turn 1#1", reserved: { outputTokens: 500 } },
    {
      kind: "receipt",
      value: { content: [{ text: "A catch." }], requestId: "req_1", stopReason: "end_turn" },
    },
  ]);
});

test("tools run in parallel, as steps or effects, and what they answer goes back to the model", async () => {
  const posted: string[] = [];
  const post = tool({
    name: "post",
    description: "Posts",
    input: z.object({ text: z.string() }),
    run: ({ text: words }, key) => {
      posted.push(key);
      return { posted: words };
    },
  });
  const tools = [lookup((city) => `${city} is far`), post];
  await using b = await asking(
    nats,
    (_, n) =>
      n === 1
        ? uses(
            use("lookup", { city: "Bern" }, "a"),
            use("post", { text: "hi" }, "b"),
            use("lookup", { city: "Rom" }, "c"),
          )
        : text("done"),
    { tools },
  );
  expect(await b.finish()).toMatchObject({ state: "completed", result: { text: "done" } });
  expect(posted).toEqual([expect.stringMatching(/^pawl-/)]);
  expect(b.model.requests[0]?.body.tools).toMatchObject([
    {
      name: "lookup",
      input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    },
    { name: "post" },
  ]);
  expect(b.sent(2, 2)).toEqual({
    role: "user",
    content: [
      { type: "tool_result", tool_use_id: "a", content: "Bern is far" },
      { type: "tool_result", tool_use_id: "b", content: '{"posted":"hi"}' },
      { type: "tool_result", tool_use_id: "c", content: "Rom is far" },
    ],
  });
  const keys = (await b.journal()).map((entry) => `${entry.kind} ${entry.key}`);
  expect(keys).toEqual(
    expect.arrayContaining([
      "step ask/lookup/a#1",
      "step ask/lookup/c#1",
      "intent ask/post/b#1",
      "receipt ask/post/b#1",
    ]),
  );
});

test("what a tool can't do is told to the model: a wrong input, no such tool, an error", async () => {
  const failing = lookup(() => {
    throw new Error("no network");
  });
  const refusing = tool({
    name: "refusing",
    description: "Refuses",
    input: z.object({}),
    run: () => {
      throw new ToolError("not on Sundays");
    },
  });
  await using b = await asking(
    nats,
    (_, n) =>
      n === 1
        ? uses(
            use("lookup", { city: 7 }, "a"),
            use("nothing", {}, "b"),
            use("lookup", { city: "X" }, "c"),
            use("refusing", {}, "d"),
          )
        : text("sorry"),
    { tools: [failing, refusing] },
  );
  expect(await b.finish()).toMatchObject({ state: "completed" });
  expect(b.sent(2, 2)?.content).toMatchObject([
    { tool_use_id: "a", is_error: true, content: expect.stringMatching(/city: .*expected string/i) },
    { tool_use_id: "b", is_error: true, content: 'There is no tool "nothing"' },
    { tool_use_id: "c", is_error: true, content: "no network" },
    { tool_use_id: "d", is_error: true, content: "not on Sundays" },
  ]);
});

describe("what a read-only tool throws to decide over its task is not told to the model", () => {
  const asks = () => uses(use("lookup", { city: "Bern" }));

  test("Fatal ends it, though it might be tried again", async () => {
    const tools = [
      lookup(() => {
        throw new Fatal("the licence has expired");
      }),
    ];
    await using b = await asking(nats, asks, { tools }, { attempts: 3 });
    expect(await b.finish()).toMatchObject({
      state: "failed",
      attempts: 1,
      error: { code: "fatal", message: "the licence has expired", phase: "handler" },
    });
    expect(b.model.requests).toHaveLength(1);
  });

  test("Retry has it tried again, after its time: the turn is kept, and the tool runs anew", async () => {
    let tries = 0;
    const tools = [
      lookup((city) => {
        if (++tries === 1) throw new Retry("busy until six", 400);
        return `${city} is far`;
      }),
    ];
    const script = (_: unknown, n: number) => (n === 1 ? asks() : text("Far."));
    await using b = await asking(nats, script, { tools }, { attempts: 2, backoff: { first: "1h" } });
    await b.submit({}, { id: "t" });
    await b.drain();
    const waiting = await b.task("t");
    expect(waiting).toMatchObject({
      state: "scheduled",
      attempts: 1,
      lastError: { code: "handler_failed", message: "busy until six" },
    });
    expect((waiting as { dueAt: number }).dueAt - waiting.updatedAt).toBeLessThan(1_000);
    expect(await b.finish()).toMatchObject({
      state: "completed",
      result: { text: "Far." },
      spent: { turns: 2 },
    });
    expect([tries, b.model.requests.length]).toEqual([2, 2]);
    expect(b.sent(2, 2)?.content).toMatchObject([{ content: "Bern is far" }]);
  });
});

describe("stop reasons", () => {
  test("pause_turn: the same conversation goes on", async () => {
    await using b = await asking(nats, (_, n) =>
      n === 1 ? { ...text("thinking…"), stopReason: "pause_turn" } : text("there"),
    );
    expect(await b.finish()).toMatchObject({ result: { text: "there" }, spent: { turns: 2 } });
    expect(b.model.requests[1]?.body.messages).toHaveLength(2);
  });

  test.each([
    ["refusal", {}, "model_refusal"],
    ["max_tokens", {}, "model_truncated"],
    ["model_context_window_exceeded", {}, "model_context"],
    ["tool_use", { maxTurns: 3, tools: [lookup(() => 1)] }, "model_turns"],
  ] as const)("%s fails the task by name", async (stopReason, request, code) => {
    const content =
      stopReason === "tool_use" ? [use("lookup", { city: "x" })] : [{ type: "text", text: "…" }];
    await using b = await asking(nats, () => ({ content, stopReason }), request);
    expect(await b.finish()).toMatchObject({ state: "failed", error: { code }, executions: 1 });
  });

  test("max_tokens can be taken as it is", async () => {
    await using b = await asking(nats, () => ({ ...text("half"), stopReason: "max_tokens" }), {
      onMaxTokens: "return",
    });
    expect(await b.finish()).toMatchObject({ result: { text: "half", stopReason: "max_tokens" } });
  });
});
