import { describe, expect, test } from "vitest";
import { type AgentContext, Fatal } from "../../shared/agent.ts";
import { cancel, redrive, signal } from "../../shared/dispatch/operate.ts";
import { approvalSignal } from "../../shared/task/signals.ts";
import type { Json } from "../../shared/values/json.ts";
import { agentOf } from "../support/bench.ts";
import { type Death, inMemory } from "../support/in-memory.ts";

const answer = (approved: boolean) => ({ approved, by: "ann" });

/** An agent that files an issue, then does what is given, then posts; and how often it did what. */
function filing(rest: (context: AgentContext<unknown>) => Promise<unknown>) {
  const done: string[] = [];
  const agent = agentOf(
    async (context) => {
      const { step, effect } = context;
      await step("read", () => void done.push("read"));
      await effect("file", { run: () => void done.push("file"), verify: () => undefined });
      const result = await rest(context);
      await effect("post", { run: () => void done.push("post") });
      return result;
    },
    { attempts: 2 },
  );
  return { agent, done };
}

describe("a redrive asks again", () => {
  test("an approval that was rejected", async () => {
    const { agent, done } = filing(({ approval }) => approval("publish"));
    const m = inMemory({ main: agent });
    await m.submit("main", "t");
    await m.run("t");
    await signal(m.deps, "t", approvalSignal("publish"), answer(false));
    expect(await m.run("t")).toMatchObject({ state: "failed", error: { code: "approval_rejected" } });
    m.pass(1_000);
    await redrive(m.deps, "t");
    // The rejection that was heard once is not heard again.
    expect(await m.run("t")).toMatchObject({ state: "waiting", waitingFor: ["approval:publish"] });
    await signal(m.deps, "t", approvalSignal("publish"), answer(true));
    expect(await m.run("t")).toMatchObject({ state: "completed", result: { by: "ann" } });
    expect(done).toEqual(["read", "file", "post"]);
  });

  test("the same answer, a moment after the redrive and before the task asks again", async () => {
    const { agent } = filing(({ approval }) => approval("publish"));
    const m = inMemory({ main: agent });
    await m.submit("main", "t");
    await m.run("t");
    await signal(m.deps, "t", approvalSignal("publish"), answer(false));
    await m.run("t");
    m.pass(1_000);
    await redrive(m.deps, "t");
    m.pass(1_000);
    // No second click on the first question: it answers the next.
    await signal(m.deps, "t", approvalSignal("publish"), answer(false));
    expect(await m.run("t")).toMatchObject({ state: "failed", error: { code: "approval_rejected" } });
  });

  test("an approval that nobody answered, with a new deadline", async () => {
    const { agent, done } = filing(({ approval }) => approval("publish", { timeout: "1h" }));
    const m = inMemory({ main: agent });
    await m.submit("main", "t");
    await m.run("t");
    m.pass(3_600_000);
    expect(await m.run("t")).toMatchObject({ state: "failed", error: { code: "approval_timeout" } });
    m.pass(86_400_000);
    await redrive(m.deps, "t");
    const dueAt = m.deps.clock.now() + 3_600_000;
    expect(await m.run("t")).toMatchObject({ state: "waiting", dueAt });
    await signal(m.deps, "t", approvalSignal("publish"), answer(true));
    expect(await m.run("t")).toMatchObject({ state: "completed" });
    expect(done).toEqual(["read", "file", "post"]);
  });

  test("an event that did not come, on which the handler threw an error of its own, attempt by attempt", async () => {
    const { agent, done } = filing(async ({ waitFor }) => {
      const paid = await waitFor("paid", { timeout: "1h" });
      if (paid === undefined) throw new Error("not paid");
      return paid as Json;
    });
    const m = inMemory({ main: agent });
    await m.submit("main", "t");
    await m.run("t");
    m.pass(3_600_000);
    expect(await m.run("t")).toMatchObject({ state: "scheduled" });
    m.pass(3_600_000);
    expect(await m.run("t")).toMatchObject({ state: "failed", error: { code: "attempts_exhausted" } });
    await redrive(m.deps, "t");
    expect(await m.run("t")).toMatchObject({ state: "waiting", waitingFor: ["paid"] });
    await signal(m.deps, "t", "paid", 7);
    expect(await m.run("t")).toMatchObject({ state: "completed", result: 7 });
    expect(done).toEqual(["read", "file", "post"]);
  });

  test("an answer that a model refused to give, which is paid once more", async () => {
    let asked = 0;
    const { agent, done } = filing(
      async ({ llm }) => (await llm("draft", { model: "claude-haiku-4-5", prompt: "?", maxTokens: 10 })).text,
    );
    const { scripted } = await import("../../shared/testing/scripted-model.ts");
    const refusal = { content: [{ type: "text", text: "No." }], stopReason: "refusal" };
    const m = inMemory(
      { main: agent },
      scripted(() => (++asked === 1 ? refusal : "Yes.")),
    );
    await m.submit("main", "t");
    expect(await m.run("t")).toMatchObject({ state: "failed", error: { code: "model_refusal" } });
    const { spent } = await m.task("t");
    await redrive(m.deps, "t");
    expect(await m.run("t")).toMatchObject({ state: "completed", result: "Yes.", spent: { turns: 2 } });
    // The refusal was paid, and no later execution saves it.
    expect((await m.deps.store.getHead("t"))?.head).toMatchObject({ forgotten: spent, saved: { turns: 0 } });
    expect(done).toEqual(["read", "file", "post"]);
  });
});

describe("of a parent, a redrive looks at its child again", () => {
  async function family(awaits: (context: AgentContext<unknown>) => Promise<unknown>) {
    const { agent, done } = filing(awaits);
    let isWell = false;
    const child = agentOf(({ id }) => {
      if (!isWell) throw new Fatal("ill");
      return { from: id };
    });
    const m = inMemory({ main: agent, child });
    const childOf = async () => {
      const entry = (await m.entries("t")).find(
        ({ kind, key }) => kind === "step" && key === "submit child k#1",
      );
      return (entry as unknown as { value: string }).value;
    };
    await m.submit("main", "t");
    await m.run("t");
    await m.run(await childOf());
    await m.run("t");
    m.pass(3_600_000);
    expect(await m.run("t")).toMatchObject({ state: "failed" });
    return {
      ...m,
      done,
      childOf,
      heal: () => {
        isWell = true;
      },
    };
  }
  const awaiting = async ({ submit }: AgentContext<unknown>) =>
    (await submit("child", {}, { key: "k" })).result();

  test("that was redriven and completed: its result is used", async () => {
    const m = await family(awaiting);
    const child = await m.childOf();
    m.heal();
    await redrive(m.deps, child);
    await m.run(child);
    await redrive(m.deps, "t");
    expect(await m.run("t")).toMatchObject({ state: "completed", result: { from: child } });
    expect(m.done).toEqual(["read", "file", "post"]);
  });

  test("that is still under way: it is waited for", async () => {
    const m = await family(awaiting);
    const child = await m.childOf();
    m.heal();
    m.pass(1_000);
    await redrive(m.deps, child);
    await redrive(m.deps, "t");
    expect(await m.run("t")).toMatchObject({ state: "waiting", waitingFor: [`child:${child}`] });
    await m.run(child);
    expect(await m.run("t")).toMatchObject({ state: "completed", result: { from: child } });
    expect(m.done).toEqual(["read", "file", "post"]);
  });

  test("whose end comes before the parent has made ready to wait is not taken for the word that it said before", async () => {
    const m = await family(awaiting);
    const child = await m.childOf();
    m.heal();
    m.pass(1_000);
    await redrive(m.deps, child);
    await redrive(m.deps, "t");
    m.pass(1_000);
    await m.run(child);
    expect((await m.task("t")).signals.filter(({ name }) => name === `child:${child}`)).toHaveLength(2);
  });

  test("that failed still: so does the parent, and it can be redriven again", async () => {
    const m = await family(awaiting);
    await redrive(m.deps, "t");
    expect(await m.run("t")).toMatchObject({ state: "failed", error: { code: "child_failed" } });
    m.heal();
    const child = await m.childOf();
    await redrive(m.deps, child);
    await m.run(child);
    await redrive(m.deps, "t");
    expect(await m.run("t")).toMatchObject({ state: "completed" });
    expect(m.done).toEqual(["read", "file", "post"]);
  });

  test("in a branch beside others, whose errors are wrapped", async () => {
    const ran: string[] = [];
    const m = await family(async (context) => {
      const slow = async () => {
        for (const name of ["a", "b", "c"]) await context.step(name, () => void ran.push(name));
      };
      const wrapped = awaiting(context).catch((error: unknown) => {
        throw new Error("the child did not do it", { cause: error });
      });
      return (await Promise.all([wrapped, slow()]))[0];
    });
    const child = await m.childOf();
    m.heal();
    await redrive(m.deps, child);
    await m.run(child);
    await redrive(m.deps, "t");
    expect(await m.run("t")).toMatchObject({ state: "completed", result: { from: child } });
    expect(ran).toEqual(["a", "b", "c"]);
    expect(m.done).toEqual(["read", "file", "post"]);
  });
});

test("a failure that the handler went on from is history: what failed last is tried again, and nothing else asked", async () => {
  let isWell = false;
  const { agent, done } = filing(async ({ approval, step }) => {
    const isRejected = await approval("publish").then(
      () => false,
      () => true,
    );
    return step("tell", () => {
      if (!isWell) throw new Fatal("away");
      return isRejected;
    });
  });
  const m = inMemory({ main: agent });
  await m.submit("main", "t");
  await m.run("t");
  await signal(m.deps, "t", approvalSignal("publish"), answer(false));
  expect(await m.run("t")).toMatchObject({ state: "failed", error: { code: "fatal" } });
  isWell = true;
  await redrive(m.deps, "t");
  expect(await m.run("t")).toMatchObject({ state: "completed", result: true });
  expect(done).toEqual(["read", "file", "post"]);
});

test("a process that dies at any write of the journal repeats and loses nothing of a redrive", async () => {
  for (const when of ["before", "after"] as const)
    for (let at = 1; at <= 6; at++) {
      const { agent, done } = filing(({ approval }) => approval("publish"));
      const m = inMemory({ main: agent });
      await m.submit("main", "t");
      await m.run("t");
      await signal(m.deps, "t", approvalSignal("publish"), answer(false));
      await m.run("t");
      m.pass(1_000);
      await redrive(m.deps, "t");
      await signal(m.deps, "t", approvalSignal("publish"), answer(true));
      const death: Death = { at, when };
      const ended = await m.run("t", death);
      const redriven = (await m.entries("t")).filter(({ kind }) => kind === "redriven");
      expect([death, redriven.length]).toEqual([death, 1]);
      // Died between the post and its receipt: nobody knows, and a person is asked.
      const isInDoubt = ended.state === "in_doubt";
      expect([death, isInDoubt ? "completed" : ended.state]).toEqual([death, "completed"]);
      expect(done.filter((one) => one === "read" || one === "file")).toEqual(["read", "file"]);
      expect(done.filter((one) => one === "post").length).toBeLessThanOrEqual(1);
    }
});

test("of two redrives at once one is refused; a redrive that is cancelled asks nothing", async () => {
  const { agent, done } = filing(({ approval }) => approval("publish"));
  const m = inMemory({ main: agent });
  await m.submit("main", "t");
  await m.run("t");
  await signal(m.deps, "t", approvalSignal("publish"), answer(false));
  await m.run("t");
  const both = await Promise.allSettled([redrive(m.deps, "t"), redrive(m.deps, "t", { from: "publish" })]);
  expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  await cancel(m.deps, "t");
  expect(await m.run("t")).toMatchObject({ state: "cancelled" });
  expect(done).toEqual(["read", "file"]);
});
