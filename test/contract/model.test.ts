import { expect, test } from "vitest";
import { type Reply, startModel, text } from "../../infra/local/model.ts";
import { anthropic } from "../../shared/adapters/anthropic.ts";
import type { ModelError } from "../../shared/ports/model.ts";

const never = new AbortController().signal;
const request = { model: "claude-sonnet-5-5", max_tokens: 10, messages: [{ role: "user", content: "?" }] };
const failure = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: ModelError) => error,
  );

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
