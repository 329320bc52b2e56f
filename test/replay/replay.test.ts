import { expect, test } from "vitest";
import * as z from "zod";
import { type Agent, type AgentContext, defineAgent, tool } from "../../shared/agent.ts";
import { redrive, signal } from "../../shared/dispatch/operate.ts";
import { type ExportedJournal, exportJournal } from "../../shared/replay/exported.ts";
import { replay } from "../../shared/replay/replay.ts";
import { scripted } from "../../shared/testing/scripted-model.ts";
import { asks } from "../../shared/testing.ts";
import { inMemory } from "../support/in-memory.ts";

const MODEL = "claude-haiku-4-5";
type Run = (context: AgentContext<unknown>) => unknown;
const agentOf = (run: Run, more: object = {}): Agent =>
  defineAgent({ run: async (context) => run(context), ...more });

/** All that a handler may do to the world. */
function everything(world: string[], more: { prompt?: string; first?: string; system?: string } = {}) {
  const { prompt = "Say what you see", first = "read", system } = more;
  const did = <T>(what: string, value: T): T => {
    world.push(what);
    return value;
  };
  const post = tool({
    name: "post",
    description: "Posts",
    input: z.object({ text: z.string() }),
    run: ({ text }) => did("tool", `posted ${text}`),
  });
  return agentOf(async ({ step, effect, llm, approval, sleep, submit, waitFor }) => {
    const large = await step(first, () => did("step", "x".repeat(20_000)));
    const said = await llm("ask", {
      ...{ model: MODEL, prompt, tools: [post], maxTokens: 50 },
      ...(system !== undefined && { system }),
    });
    await sleep("2h");
    const { by } = await approval("go");
    const child = await submit("child", { of: 1 }, { key: "k" });
    const receipt = await effect("send", {
      run: () => did("effect", "sent"),
      verify: () => did("verify", undefined),
    });
    const event = await waitFor("late", { timeout: "1h" });
    return { large: large.length, said: said.text, by, child: child.id, receipt, event: event ?? null };
  });
}

/** A task of it that has ended, and its journal. */
async function ended(agent: Agent): Promise<ExportedJournal> {
  const model = scripted([asks(["post", { text: "hello" }]), "done"]);
  const memory = inMemory({ a: agent, child: agent }, model);
  await memory.submit("a", "t");
  await memory.run("t");
  memory.pass(3 * 3_600_000);
  await memory.run("t");
  await signal(memory.deps, "t", "approval:go", { approved: true, by: "ann" });
  await memory.run("t");
  memory.pass(3 * 3_600_000);
  await memory.run("t");
  return exportJournal(memory.deps, await memory.task("t"));
}

test("a completed task replays: every call gets what the journal has, and nothing is done", async () => {
  const world: string[] = [];
  const agent = everything(world);
  const journal = await ended(agent);
  expect(journal.task.state).toBe("completed");
  expect(world).toEqual(["step", "tool", "effect"]);
  const again = await replay(agent, JSON.parse(JSON.stringify(journal)));
  expect(again).toMatchObject({ ends: "returns", differences: [], result: journal.task.result });
  expect(again.calls.map(({ call }) => call)).toEqual([
    "step read#1",
    "turn ask/turn 1#1",
    expect.stringMatching(/^effect ask\/post\/use_1_post#1$/),
    "turn ask/turn 2#1",
    "wait sleep#1",
    "wait go#1",
    "step submit child k#1",
    "effect send#1",
    "wait late#1",
  ]);
  expect(again.calls.every(({ would }) => would === undefined)).toBe(true);
  expect(world).toEqual(["step", "tool", "effect"]);
});

test("whatever a journal ends with, a replay of it stops there, and does nothing", async () => {
  const world: string[] = [];
  const agent = everything(world);
  const { task, entries, ...rest } = await ended(agent);
  world.length = 0;
  const { result: _, ...open } = task;
  const stops: (string | undefined)[] = [];
  for (let count = 0; count < entries.length; count++) {
    const part = {
      ...rest,
      at: entries[count - 1]?.when ?? 0,
      task: { ...open, state: "running" as const },
      entries: entries.slice(0, count),
    };
    const { ends, calls, differences } = await replay(agent, part);
    expect([ends, differences], `${count} entries`).toEqual(["stops", []]);
    const last = calls.at(-1);
    expect(calls.filter(({ would }) => would !== undefined)).toEqual([last]);
    stops.push(`${last?.call}: ${last?.would?.slice(0, 30)}`);
  }
  expect(world).toEqual([]);
  const turns = (n: number) => [
    `turn ask/turn ${n}#1: ask ${MODEL}`,
    `turn ask/turn ${n}#1: ask ${MODEL} again: th`,
  ];
  expect([...new Set(stops)]).toEqual([
    "step read#1: run this step",
    ...turns(1),
    "effect ask/post/use_1_post#1: run this effect",
    "effect ask/post/use_1_post#1: find out whether try 1 of this",
    ...turns(2),
    "wait sleep#1: sleep",
    expect.stringMatching(/^wait sleep#1: sleep until \d{4}-/),
    expect.stringMatching(/^wait go#1: take the answer/),
    "step submit child k#1: submit this child",
    "effect send#1: run this effect",
    "effect send#1: find out whether try 1 of this",
    "wait late#1: wait for it",
    expect.stringMatching(/^wait late#1: wait for it, until/),
  ]);
});

test("other code is named by its first difference", async () => {
  const world: string[] = [];
  const journal = await ended(everything(world));
  const kindsOf = async (agent: Agent, of = journal) =>
    (await replay(agent, of)).differences.map(({ kind, message }) => `${kind}: ${message}`);
  const text = (part: string) => expect.stringContaining(part);
  expect(await kindsOf(everything(world, { first: "look" }))).toEqual([
    text("calls: Call 1 of the handler is step look#1, but in this task's journal it is step read#1"),
  ]);
  expect(await kindsOf(everything(world, { prompt: "Say what you hear" }))).toEqual([
    text('prompt: Turn ask/turn 1#1: the model would be asked something else: "[user]'),
    text("prompt: Turn ask/turn 2#1"),
  ]);
  expect((await kindsOf(everything(world, { prompt: "Say what you hear" })))[0]).toMatch(
    /see" was asked, and now .*hear"/,
  );
  expect(await kindsOf(agentOf(() => 1))).toEqual([
    text("calls: It returns after its beginning; the journal goes on with step read#1"),
  ]);
  const throws = agentOf(async ({ step }) => {
    await step("read", () => "");
    throw new Error("no");
  });
  expect(await kindsOf(throws)).toEqual([
    "error: After step read#1 it throws handler_failed: no; the journal goes on with turn ask/turn 1#1",
  ]);
  // A handler that catches what names the difference is different all the same.
  const catches = agentOf(async ({ step }) => step("look", () => "").catch(() => "fine"));
  expect((await kindsOf(catches))[0]).toMatch(/^calls: Call 1/);
  const picky = agentOf(() => 1, { input: z.object({ needed: z.string() }) });
  expect(await kindsOf(picky)).toEqual([text("input: input_invalid: The agent does not accept this input")]);
  const hangs = agentOf(() => new Promise(() => {}));
  const hung = await replay(hangs, journal, { timeout: "50ms" });
  expect(hung).toMatchObject({ ends: "hangs", differences: [{ kind: "error" }] });
  // What replays did, and what was done before it.
  expect(world).toEqual(["step", "tool", "effect"]);
});

test("one call more, another result, another system prompt", async () => {
  const before = agentOf(async ({ step, llm }) => {
    await step("a", () => 1);
    return (await llm("say", { model: MODEL, system: "Be brief", prompt: "?", maxTokens: 9 })).text;
  });
  const memory = inMemory({ a: before }, scripted(["yes"]));
  await memory.submit("a", "t");
  await memory.run("t");
  const journal = await exportJournal(memory.deps, await memory.task("t"));
  const more = agentOf(async ({ step, llm }) => {
    await step("a", () => 1);
    const { text } = await llm("say", { model: MODEL, system: "Be long", prompt: "?", maxTokens: 9 });
    return step("b", () => `${text}!`);
  });
  expect(await replay(more, journal)).toMatchObject({
    ends: "stops",
    differences: [
      { kind: "prompt", message: expect.stringMatching(/brief.*was asked, and now it is .*long/) },
      { kind: "calls", message: "step b#1 is not in the journal, and the task was completed without it" },
    ],
  });
  const other = agentOf(async ({ step, llm }) => {
    await step("a", () => 1);
    return { text: (await llm("say", { model: MODEL, system: "Be brief", prompt: "?", maxTokens: 9 })).text };
  });
  expect((await replay(other, journal)).differences).toEqual([
    { kind: "result", message: 'It returns {"text":"yes"}; the task was completed with "yes"' },
  ]);
  const { result: _, ...open } = journal.task;
  expect((await replay(other, { ...journal, task: { ...open, state: "running" } })).differences).toEqual([]);
});

test("branches: each goes as far as the journal has it", async () => {
  const agent = agentOf(async ({ step, sleep }) => {
    const slow = async () => {
      await sleep("1h");
      return step("late", () => 1);
    };
    const quick = async () => {
      await step("one", () => 1);
      return step("two", () => 2);
    };
    return Promise.all([slow(), quick()]);
  });
  const memory = inMemory({ a: agent });
  await memory.submit("a", "t");
  expect((await memory.run("t")).state).toBe("scheduled");
  const journal = await exportJournal(memory.deps, await memory.task("t"));
  const { ends, calls, differences } = await replay(agent, journal);
  expect([ends, differences]).toEqual(["stops", []]);
  expect(calls).toEqual([
    { call: "wait sleep#1", would: expect.stringMatching(/^sleep until/) },
    { call: "step one#1" },
    { call: "step two#1" },
  ]);
});

test("a redriven task is replayed as its next holder would run it", async () => {
  let isBad = true;
  const world: string[] = [];
  const agent = agentOf(
    async ({ step, approval }) => {
      await step("a", () => void world.push("a"));
      await approval("go");
      if (isBad) throw new Error("bad");
    },
    { limits: { attempts: 1 } },
  );
  const memory = inMemory({ a: agent });
  await memory.submit("a", "t");
  await memory.run("t");
  await signal(memory.deps, "t", "approval:go", { approved: false, by: "ann" });
  expect((await memory.run("t")).state).toBe("failed");
  const failed = await exportJournal(memory.deps, await memory.task("t"));
  expect(await replay(agent, failed)).toMatchObject({
    ends: "throws",
    error: { code: "approval_rejected" },
    differences: [],
  });
  await redrive(memory.deps, "t");
  isBad = false;
  const redriven = await exportJournal(memory.deps, await memory.task("t"));
  expect(await replay(agent, redriven)).toMatchObject({
    ends: "stops",
    calls: [{ call: "step a#1" }, { call: "wait go#1", would: expect.stringContaining("answer") }],
    differences: [],
  });
  expect(world).toEqual(["a"]);
});
