import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Reply, startModel, text } from "../../infra/local/model.ts";
import { anthropic } from "../../shared/adapters/anthropic.ts";
import { prices } from "../../shared/journal/prices.ts";
import { costOf } from "../../shared/journal/usage.ts";
import type { Model, ModelError } from "../../shared/ports/model.ts";
import { inWorkerd } from "../support/model/in-workerd.ts";

const never = new AbortController().signal;
const request = { model: "claude-sonnet-5-5", max_tokens: 10, messages: [{ role: "user", content: "?" }] };
const failure = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: ModelError) => error,
  );

test("a process that was frozen between the call and the request sends none", async () => {
  await using model = await startModel(() => text("nobody asked"));
  const client = anthropic({ apiKey: "k", baseUrl: model.url });
  // As a lease's signal does it: who asks it has it compare the clocks.
  const late = () => {
    throw new Error("its lease is over");
  };
  const signal = Object.defineProperty(new AbortController().signal, "throwIfAborted", { value: late });
  expect(await failure(client.turn(request, signal))).toMatchObject({ code: "model_unavailable" });
  expect(model.requests).toEqual([]);
});

test("a slow answer is waited for as long as it says something", async () => {
  await using model = await startModel(() => ({ ...text("slow and whole"), pause: 400 }) as Reply);
  const client = anthropic({ apiKey: "k", baseUrl: model.url, silence: 2_000 });
  const begun = Date.now();
  const turn = await client.turn(request, never);
  expect(Date.now() - begun).toBeGreaterThan(2_000);
  expect(turn).toMatchObject({ content: [{ type: "text", text: "slow and whole" }], stopReason: "end_turn" });
});

test("one that falls silent is given up, and may have cost something", async () => {
  await using model = await startModel(() => ({ ...text("never"), stallAfter: 2 }) as Reply);
  const client = anthropic({ apiKey: "k", baseUrl: model.url, silence: 300 });
  expect(await failure(client.turn(request, never))).toMatchObject({
    code: "model_unavailable",
    isFree: false,
  });
});

test("tool calls come back with their input whole", async () => {
  const use = { type: "tool_use", id: "u", name: "post", input: { deep: [1, { text: 'é\n"' }] } };
  await using model = await startModel(() => ({
    content: [{ type: "text", text: "so" }, use],
    stopReason: "tool_use",
  }));
  const turn = await anthropic({ apiKey: "k", baseUrl: model.url }).turn(request, never);
  expect(turn).toMatchObject({ content: [{ text: "so" }, use], stopReason: "tool_use", requestId: "req_1" });
});

test("nobody there: not known to be free, as a cut connection looks the same", async () => {
  const client = anthropic({ apiKey: "k", baseUrl: "http://127.0.0.1:1" });
  expect(await failure(client.turn(request, never))).toMatchObject({
    code: "model_unavailable",
    isFree: false,
  });
});

test("retry-after is read as seconds and as a date", async () => {
  const date = new Date(Date.now() + 60_000).toUTCString();
  const after: (number | undefined)[] = [];
  for (const value of ["2", date, "soon"]) {
    await using model = await startModel(() => ({ status: 429, headers: { "retry-after": value } }));
    after.push((await failure(anthropic({ apiKey: "k", baseUrl: model.url }).turn(request, never)))?.after);
  }
  expect(after[0]).toBe(2_000);
  expect(after[1]).toBeGreaterThan(50_000);
  expect(after[2]).toBeUndefined();
});

describe.each(["Node", "workerd"])("what the API says comes whole, in %s", (where) => {
  let asks: (url: string) => Model;
  const stack = new AsyncDisposableStack();
  beforeAll(async () => {
    asks = where === "Node" ? (baseUrl) => anthropic({ apiKey: "k", baseUrl }) : await inWorkerd(stack);
  });
  afterAll(() => stack.disposeAsync());

  test("blocks of every kind, and what they took", async () => {
    const content = [
      { type: "thinking", thinking: "let me see", signature: "sig" },
      {
        type: "server_tool_use",
        id: "s1",
        name: "web_search",
        input: { query: "pawl" },
        caller: { type: "direct" },
      },
      { type: "web_search_tool_result", tool_use_id: "s1", content: [], caller: { type: "direct" } },
      { type: "text", text: "A catch.", citations: null },
    ];
    await using model = await startModel(() => ({ content, usage: { iterations: [] } }));
    const tools = [{ type: "web_search_20260318", name: "web_search", max_uses: 2 }];
    const turn = await asks(model.url).turn({ ...request, tools, inference_geo: "us" }, never);
    expect(turn.content).toEqual(content);
    // Twice the prompt, and what the search had found.
    expect(turn.usage).toMatchObject({
      server_tool_use: { web_search_requests: 1 },
      inference_geo: "us",
      iterations: [],
    });
    expect(turn.usage.input_tokens).toBeGreaterThan(5_000);
    expect(costOf(turn.usage, request.model, prices).usd).toBeCloseTo(model.bill(), 10);
  });

  test("betas are its header, and their blocks are kept; so are ids, and what a refusal says", async () => {
    const content = [
      { type: "compaction", content: "All that was said.", encrypted_content: null },
      { type: "mcp_tool_use", id: "m1", name: "read", server_name: "s", input: { at: [1] } },
    ];
    const stopDetails = { type: "refusal", category: "cyber", explanation: null };
    const reply = { content, stopReason: "refusal", stopDetails, container: "container_1" };
    await using model = await startModel(() => reply);
    const more = { betas: ["mcp-client-2026", "compact-2026"], mcp_servers: [] };
    const turn = await asks(model.url).turn({ ...request, ...more }, never);
    expect(turn).toMatchObject({ content, stopDetails, container: "container_1", id: "msg_1" });
    expect(model.requests[0]?.betas).toEqual(more.betas);
    expect(model.requests[0]?.body).not.toHaveProperty("betas");
    expect(await asks(model.url).count({ ...request, ...more }, never)).toBeGreaterThan(0);
  });

  test("a count, for which nothing is charged, of what counting takes", async () => {
    await using model = await startModel(() => text("?"), { sizes: { file_1: 70_000 } });
    const source = { type: "file", file_id: "file_1" };
    const messages = [{ role: "user", content: [{ type: "document", source }] }];
    const count = await asks(model.url).count(
      { ...request, messages, metadata: {}, stop_sequences: ["x"] },
      never,
    );
    expect(count).toBeGreaterThan(70_000);
    expect(model.counted).toEqual([{ model: request.model, messages }]);
    expect([model.requests.length, model.bill()]).toEqual([0, 0]);
  });

  test("a refusal before the answer is free, also one of a count", async () => {
    await using model = await startModel(() => text("?"));
    const refused = {
      code: "model_invalid",
      isFree: true,
      message: expect.stringMatching(/at least one message/),
    };
    const client = asks(model.url);
    for (const ask of [client.turn, client.count])
      expect(await failure(ask({ ...request, messages: [] }, never))).toMatchObject(refused);
    expect(model.bill()).toBe(0);
  });
});

test("cut before its first event an answer may have been paid for; so may one whose error is not the API's own", async () => {
  await using model = await startModel((_, n) =>
    n === 1 ? ({ ...text("x"), cutAfter: 0 } as Reply) : { status: 504, page: "<h1>Gateway timeout</h1>" },
  );
  const client = anthropic({ apiKey: "k", baseUrl: model.url });
  const unknown = { code: "model_unavailable", isFree: false };
  expect(await failure(client.turn(request, never))).toMatchObject(unknown);
  expect(model.bill()).toBeGreaterThan(0);
  expect(await failure(client.turn(request, never))).toMatchObject(unknown);
});

test("the stand-in answers without streaming too", async () => {
  await using model = await startModel(() => text("whole"));
  const answer = await fetch(`${model.url}/v1/messages`, { method: "POST", body: JSON.stringify(request) });
  expect(await answer.json()).toMatchObject({
    type: "message",
    content: [{ text: "whole" }],
    stop_reason: "end_turn",
  });
  expect((await fetch(`${model.url}/v1/other`)).status).toBe(404);
});
