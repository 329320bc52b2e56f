import { describe, expect, test } from "vitest";
import * as z from "zod";
import { type AgentContext, Fatal, tool } from "../../shared/agent.ts";
import { redrive, resolve, signal } from "../../shared/dispatch/operate.ts";
import { approvalSignal } from "../../shared/task/signals.ts";
import { asks, scripted } from "../../shared/testing/scripted-model.ts";
import { agentOf } from "../support/bench.ts";
import { inMemory } from "../support/in-memory.ts";

const MODEL = "claude-haiku-4-5";

/** Fails at its end until it is told to be well, and counts what it does. */
function failing(run: (context: AgentContext<unknown>, did: (what: string) => number) => Promise<unknown>) {
  const done = new Map<string, number>();
  const did = (what: string) => {
    const count = (done.get(what) ?? 0) + 1;
    done.set(what, count);
    return count;
  };
  const state = { isWell: false };
  const agent = agentOf(async (context) => {
    const result = await run(context, did);
    if (!state.isWell) throw new Fatal("not yet");
    return result;
  });
  return { agent, state, times: () => Object.fromEntries(done) };
}

const inTheMiddle = () =>
  failing(async ({ step, effect, llm, approval, sleep }, did) => {
    const first = await effect("first", { run: () => `first ${did("first")}` });
    const read = await step("read", () => `read ${did("read")}`);
    const { text } = await llm("draft", { model: MODEL, prompt: read, maxTokens: 20 });
    await sleep("1s");
    await approval("publish");
    // Its key never changes: what was posted stays posted, whatever it would be now.
    const second = await effect("second", { run: () => `second ${did("second")} of ${read}` });
    return { first, read, text, second };
  });

test("from an entry in the middle, all but effects is done again, and what was spent stays spent", async () => {
  const { agent, state, times } = inTheMiddle();
  const m = inMemory(
    { main: agent },
    scripted((_, count) => `draft ${count}`),
  );
  await m.submit("main", "t");
  await m.run("t");
  await signal(m.deps, "t", approvalSignal("publish"), { approved: true, by: "ann" });
  expect(await m.run("t")).toMatchObject({ state: "failed", spent: { turns: 1 } });
  state.isWell = true;
  m.pass(1_000);
  await redrive(m.deps, "t", { from: "read#1" });
  expect((await m.task("t")).history.at(-1)).toMatchObject({ event: "redrive", note: "from read#1" });
  // It was approved for another draft: somebody is asked again.
  expect(await m.run("t")).toMatchObject({ state: "waiting", waitingFor: ["approval:publish"] });
  await signal(m.deps, "t", approvalSignal("publish"), { approved: true, by: "ann" });
  expect(await m.run("t")).toMatchObject({
    state: "completed",
    result: { first: "first 1", read: "read 2", text: "draft 2", second: "second 1 of read 1" },
    spent: { turns: 2 },
  });
  expect(times()).toEqual({ first: 1, read: 2, second: 1 });
  const entries = await m.entries("t");
  expect(entries.filter(({ kind }) => kind === "redriven")).toMatchObject([
    { key: "redrive 3", forgotten: { turns: 1 }, saved: { turns: 0 } },
  ]);
  expect((await m.deps.store.getHead("t"))?.head).toMatchObject({
    spent: { turns: 2 },
    forgotten: { turns: 1 },
  });
});

test("turns before the entry are kept, and saved; those after it are not", async () => {
  const { agent, state } = failing(async ({ step, llm }) => {
    await llm("one", { model: MODEL, prompt: "1", maxTokens: 20 });
    await step("between", () => 1);
    await llm("two", { model: MODEL, prompt: "2", maxTokens: 20 });
  });
  const m = inMemory(
    { main: agent },
    scripted(() => "said"),
  );
  await m.submit("main", "t");
  await m.run("t");
  state.isWell = true;
  await redrive(m.deps, "t", { from: "between" });
  // Dies once more on its way: what the second turn cost at first is never saved again.
  expect(await m.run("t", { at: 4, when: "before" })).toMatchObject({
    state: "completed",
    spent: { turns: 3 },
  });
  expect((await m.task("t")).saved.turns).toBe(2);
});

test("an effect in doubt stays in doubt, also where the handler passes by it on its new way", async () => {
  let isOther = false;
  const { agent, state } = failing(async ({ step, effect }) => {
    const way = await step("choose", () => (isOther ? "b" : "a"));
    if (way === "a")
      await effect("risky", {
        run: () => {
          throw new Error("the connection broke");
        },
      });
    return way;
  });
  const m = inMemory({ main: agent });
  await m.submit("main", "t");
  await m.run("t");
  m.pass(3_600_000);
  expect(await m.run("t")).toMatchObject({ state: "in_doubt", effect: "risky#1" });
  await resolve(m.deps, "t", { fail: true });
  isOther = true;
  state.isWell = true;
  await redrive(m.deps, "t", { from: "choose" });
  expect(await m.run("t")).toMatchObject({ state: "in_doubt", effect: "risky#1", tries: 1 });
  await resolve(m.deps, "t", { happened: false });
  expect(await m.run("t")).toMatchObject({ state: "completed", result: "b" });
});

describe("in a conversation", () => {
  const talking = () =>
    failing(async ({ llm, step }, did) => {
      const file = tool({
        name: "file",
        description: "Files an issue",
        input: z.object({}),
        run: () => `issue ${did("file")}`,
      });
      await step("read", () => did("read"));
      const { text } = await llm("triage", { model: MODEL, prompt: "?", maxTokens: 50, tools: [file] });
      await step("tell", () => did("tell"));
      return text;
    });
  /** Every answer has other ids, as a model's do. */
  const model = () =>
    scripted(({ messages }, count) => {
      if ((messages as unknown[]).length > 1) return `done ${count}`;
      const { content } = asks(["file", {}]) as { content: { id: string }[] };
      return {
        content: content.map((one) => ({ ...one, id: `${one.id}_${count}` })),
        stopReason: "tool_use",
      };
    });

  test("the turns that led to an effect are kept with it: asked again they would be another effect", async () => {
    const { agent, state, times } = talking();
    const m = inMemory({ main: agent }, model());
    await m.submit("main", "t");
    expect(await m.run("t")).toMatchObject({ state: "failed", spent: { turns: 2 } });
    state.isWell = true;
    await redrive(m.deps, "t", { from: "read" });
    // The second turn, which came after the effect, is asked again.
    expect(await m.run("t")).toMatchObject({ state: "completed", result: "done 3", spent: { turns: 3 } });
    expect(times()).toEqual({ file: 1, read: 2, tell: 2 });
  });

  test("such a turn can't be chosen", async () => {
    const { agent } = talking();
    const m = inMemory({ main: agent }, model());
    await m.submit("main", "t");
    await m.run("t");
    await expect(redrive(m.deps, "t", { from: "triage/turn 1" })).rejects.toMatchObject({
      code: "redrive_refused",
      message: expect.stringMatching(/triage\/turn 1#1 is followed by an effect.* tell#1/),
    });
  });
});

test("children are kept, with what they returned; one that failed is looked at again", async () => {
  const { agent, state, times } = failing(async ({ step, submit }, did) => {
    const n = await step("n", () => did("n"));
    const child = await submit("child", { n }, { key: "k" });
    return child.result();
  });
  const child = agentOf(({ input }) => input);
  const m = inMemory({ main: agent, child });
  await m.submit("main", "t");
  const waiting = await m.run("t");
  const [name = ""] = waiting.state === "waiting" ? waiting.waitingFor : [];
  await m.run(name.replace("child:", ""));
  expect(await m.run("t")).toMatchObject({ state: "failed" });
  state.isWell = true;
  await redrive(m.deps, "t", { from: "n" });
  expect(await m.run("t")).toMatchObject({ state: "completed", result: { n: 1 } });
  expect(times()).toEqual({ n: 2 });
});

test("what is not there is refused, with what is", async () => {
  const { agent } = failing(async ({ step }) => {
    for (let i = 0; i < 3; i++) await step("page", () => i);
    await step("sum", () => 3);
  });
  const m = inMemory({ main: agent });
  await m.submit("main", "t");
  await m.run("t");
  const refused = (from: string) => redrive(m.deps, "t", { from }).catch((error: Error) => error);
  expect(await refused("nope")).toMatchObject({
    code: "redrive_refused",
    message: `Task t's journal has no entry "nope". It has page#1, page#2, page#3, sum#1`,
  });
  expect(await refused("page")).toMatchObject({ message: expect.stringContaining('has 3 entries "page"') });
  const both = redrive(m.deps, "t", { from: "sum", fromScratch: true });
  await expect(both).rejects.toMatchObject({ code: "redrive_refused" });
  expect(await m.task("t")).toMatchObject({ state: "failed", dispatches: 1 });
});
