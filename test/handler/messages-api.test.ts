import type { StopReason } from "@anthropic-ai/sdk/resources/messages";
import { expect, test } from "vitest";
import * as z from "zod";
import { defineAgent, type LlmRequest, tool, toolContent } from "../../shared/agent.ts";
import type { Turn } from "../../shared/ports/model.ts";
import { runWith } from "../../shared/testing/run-agent.ts";
import { scripted } from "../../shared/testing/scripted-model.ts";
import { asks, everyCrash, type ModelScript, runAgent } from "../../shared/testing.ts";
import type { JsonObject } from "../../shared/values/json.ts";

const MODEL = "claude-sonnet-5-5";
const SEARCH = { type: "web_search_20260318", name: "web_search", max_uses: 2 };
const IMAGE = { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBO" } };
const CACHED = { type: "ephemeral" };

const look = tool({
  name: "look",
  description: "Looks",
  input: z.object({}),
  readOnly: true,
  run: () => toolContent([{ type: "text", text: "as seen:" }, IMAGE]),
});

const asking = (request: Partial<LlmRequest>) =>
  defineAgent({ run: ({ llm }) => llm("ask", { model: MODEL, prompt: "?", ...request }) });
const run = (model: ModelScript, request: Partial<LlmRequest> = {}) =>
  runAgent(asking(request), {}, { model });
const toolsOf = (request: JsonObject | undefined) => request?.tools as JsonObject[];
/** What the last message of a request tells the model of its tools. */
const told = (request: JsonObject | undefined) =>
  (request as { messages: { content: JsonObject[] }[] }).messages.at(-1)?.content ?? [];

test("tools of the API's side go beside one's own, from tools and from parameters", async () => {
  const fetches = { type: "web_fetch_20260318", name: "web_fetch" };
  const { requests } = await run(["so"], { tools: [look, SEARCH], parameters: { tools: [fetches] } });
  expect(requests[0]?.tools).toMatchObject([{ name: "look" }, SEARCH, fetches]);
  expect(await run(["so"], { tools: [{ name: "look", input_schema: {} }] })).toMatchObject({
    error: {
      code: "call_invalid",
      message: expect.stringMatching(/tools made by tool\({…}\), or of the API's/),
    },
  });
});

test("images and documents in a tool's result are the API's blocks, after every crash too; a stranger's JSON never is", async () => {
  const quote = tool({
    name: "quote",
    description: "Quotes",
    input: z.object({}),
    run: () => ({ blocks: [IMAGE], value: 1 }),
    verify: () => toolContent([{ type: "text", text: "found" }]),
  });
  const model = [asks(["look", {}], ["quote", {}]), "so"];
  const { requests } = await run(model, { tools: [look, quote] });
  const [seen, quoted] = told(requests[1]);
  expect(seen?.content).toEqual([{ type: "text", text: "as seen:" }, IMAGE]);
  expect(quoted?.content).toBe(JSON.stringify({ blocks: [IMAGE], value: 1 }));
  for (const { crash, run } of await everyCrash(
    asking({ tools: [look] }),
    {},
    { model: [asks(["look", {}]), "so"] },
  ))
    expect(told(run.requests.at(-1))[0], crash).toEqual(seen);
});

test("what the model knows already is given a handler, and no schema", async () => {
  const files: string[] = [];
  const memory = tool({
    type: "memory_20250818",
    name: "memory",
    input: z.looseObject({ command: z.string(), path: z.string() }),
    run: ({ command, path }) => {
      files.push(`${command} ${path}`);
      return "done";
    },
  });
  const script = [asks(["memory", { command: "create", path: "/memories/a", file_text: "b" }]), "so"];
  const { requests, state } = await run(script, { tools: [memory] });
  expect([state, files]).toEqual(["completed", ["create /memories/a"]]);
  expect(requests[0]?.tools).toEqual([{ type: "memory_20250818", name: "memory" }]);
  expect(() => tool({ name: "x", input: z.object({}), run: () => 1 })).toThrow(/description should say/);
});

test("cache marks the tools, the system and the conversation; a tool may have its own mark, and anything else", async () => {
  const own = { cache_control: { type: "ephemeral", ttl: "1h" }, defer_loading: true };
  const kept = tool({ name: "kept", description: "d", parameters: own, input: z.object({}), run: () => 1 });
  const { requests } = await run(["so"], { cache: true, system: "Be short.", tools: [look, SEARCH] });
  expect(requests[0]).toMatchObject({
    cache_control: CACHED,
    system: [{ type: "text", text: "Be short.", cache_control: CACHED }],
    tools: [{ name: "look" }, { ...SEARCH, cache_control: CACHED }],
  });
  expect(toolsOf(requests[0])[0]).not.toHaveProperty("cache_control");
  const { requests: others } = await run(["so"], { cache: true, tools: [look, kept] });
  expect(toolsOf(others[0])[1]).toMatchObject(own);
  const blocks = [
    { type: "text", text: "a" },
    { type: "text", text: "b", cache_control: CACHED },
  ];
  const { requests: plain, journal } = await run(["so"], { system: blocks });
  expect(plain[0]?.system).toEqual(blocks);
  expect(journal[0]).toMatchObject({ asked: { text: expect.stringMatching(/^\[system\]\na\n\nb/) } });
});

test("the container and the message's id are kept, and the container is given on with every later turn", async () => {
  const given: (JsonObject & { container?: unknown })[] = [];
  const base = scripted([asks(["look", {}]), "so"]);
  const model = {
    ...base,
    turn: async (...[request, signal]: Parameters<typeof base.turn>): Promise<Turn> => {
      given.push(request);
      const turn = await base.turn(request, signal);
      return { ...turn, id: `msg_${given.length}`, ...(given.length === 1 && { container: "c_1" }) };
    },
  };
  const skills = [{ type: "anthropic", skill_id: "pdf" }];
  const agent = asking({ tools: [look], parameters: { container: { skills } } });
  const { result } = await runWith(agent, {}, {}, model, []);
  expect(result).toMatchObject({ id: "msg_2" });
  expect(given.map(({ container }) => container)).toEqual([{ skills }, { skills, id: "c_1" }]);
});

test("every reason to stop that the SDK lists is dealt with, and any other is an error that names it", async () => {
  const listed: Record<StopReason, string | undefined> = {
    end_turn: undefined,
    stop_sequence: undefined,
    pause_turn: "model_turns",
    tool_use: "model_turns",
    max_tokens: "model_truncated",
    refusal: "model_refusal",
    model_context_window_exceeded: "model_context",
  };
  const ended = async (stopReason: string) => {
    const content = [{ type: "text", text: "" }];
    return (await run(() => ({ content, stopReason }), { maxTurns: 2 })).error;
  };
  for (const [reason, code] of Object.entries(listed)) expect((await ended(reason))?.code, reason).toBe(code);
  expect(await ended("compaction")).toMatchObject({
    code: "model_stop",
    message: 'ask: claude-sonnet-5-5 stopped for "compaction"',
  });
});
