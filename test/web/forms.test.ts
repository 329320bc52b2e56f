import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { type AgentContext, Fatal } from "../../shared/agent.ts";
import { agentOf } from "../support/bench.ts";
import { pagesStage } from "../support/http/pages.ts";
import { testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

type Run = (context: AgentContext<unknown>) => unknown;

/** A task that has come to a state, and somebody who looks at it. */
async function at(state: string, run: Run) {
  const s = await pagesStage(nats);
  const agent = agentOf(run, { attempts: 2, backoff: { first: "1ms" } });
  const comes = (wanted: string) =>
    until(`t is ${wanted}`, async () => {
      await s.drain(agent);
      return (await s.task("t")).state === wanted;
    });
  await s.submit({ n: 1 }, { id: "t" });
  await comes(state);
  const boss = await s.visitor("boss");
  const question = await boss.field("/ui/tasks/t", "question");
  /** Which buttons the page has. */
  const buttons = async () =>
    [...(await boss.get("/ui/tasks/t")).text.matchAll(/<button id="([a-z]+)-/g)].map(([, name]) => name);
  return Object.assign(s, { boss, question, comes, buttons });
}

test("an approval: asked once, answered once, by whom and with what note", async () => {
  await using s = await at("waiting", async ({ approval }) => {
    const first = await approval("go", { summary: "Shall I?" });
    await approval("go", { summary: "And again?" });
    return first;
  });
  const { boss, question } = s;
  expect((await boss.get("/ui/tasks/t")).text).toContain("Shall I?");
  expect(await s.buttons()).toEqual(["approve", "reject", "cancel"]);
  const answer = { question, name: "go", approved: "yes", note: "fine" };
  // A question that nobody asked is not answered ahead of time.
  expect((await boss.post("/ui/tasks/t/answer", { ...answer, name: "other" })).status).toBe(409);
  const done = await boss.post("/ui/tasks/t/answer", answer);
  expect([done.status, done.headers.get("location")]).toEqual([303, "/ui/tasks/t?done=approved"]);
  expect((await boss.get("/ui/tasks/t?done=approved")).text).toContain("You approved it.");
  expect((await boss.get("/ui/tasks/t?done=%3Cb%3E")).text).not.toContain("notice");
  // The second click of a double click.
  expect((await boss.post("/ui/tasks/t/answer", answer)).status).toBe(303);
  await s.comes("waiting");
  expect((await s.task("t")).signals).toMatchObject([
    { name: "approval:go", value: { approved: true, by: "boss", note: "fine" } },
  ]);
  // It asks again by now: an answer to the first question is none to the second.
  const late = await boss.post("/ui/tasks/t/answer", { ...answer, note: "late" });
  expect(late.status).toBe(409);
  expect(late.text).toContain("moved on");
  const second = await boss.field("/ui/tasks/t", "question");
  expect(second).not.toBe(question);
  await boss.post("/ui/tasks/t/answer", { question: second, name: "go", approved: "yes" });
  await s.comes("completed");
  expect(await s.buttons()).toEqual([]);
  const over = (await boss.get("/ui/tasks/t")).text;
  expect(over).toMatch(/<h2>Result<\/h2>.*fine/s);
  expect(over).toContain('data-live=""');
});

test("a rejection is an answer too", async () => {
  await using s = await at("waiting", ({ approval }) => approval("go"));
  const answer = { question: s.question, name: "go", approved: "no" };
  const done = await s.boss.post("/ui/tasks/t/answer", answer);
  expect(done.headers.get("location")).toBe("/ui/tasks/t?done=rejected");
  expect((await s.task("t")).signals).toMatchObject([{ value: { approved: false, by: "boss" } }]);
});

test("what waits can be cancelled; what is over can't", async () => {
  await using s = await at("waiting", ({ approval }) => approval("go"));
  expect((await s.boss.post("/ui/tasks/t/cancel", {})).status).toBe(303);
  expect((await s.task("t")).state).toBe("cancelled");
  const again = await s.boss.post("/ui/tasks/t/cancel", {});
  expect(again.status).toBe(409);
  expect(again.text).toContain("it is over");
});

test("a dead letter is tried again on its journal, or from scratch", async () => {
  let steps = 0;
  let isMended = false;
  await using s = await at("failed", async ({ step }) => {
    await step("once", () => ++steps);
    if (!isMended) throw new Fatal("no <such> user");
    return "sent";
  });
  expect(await s.buttons()).toEqual(["redrive", "anew"]);
  expect((await s.boss.get("/ui/dead-letters")).text).toContain("no &lt;such&gt; user");
  await s.boss.post("/ui/tasks/t/redrive", { question: s.question, how: "journal" });
  expect((await s.boss.post("/ui/tasks/t/redrive", { question: s.question })).status).toBe(409);
  await s.comes("failed");
  expect(steps).toBe(1);
  isMended = true;
  const question = await s.boss.field("/ui/tasks/t", "question");
  await s.boss.post("/ui/tasks/t/redrive", { question, how: "scratch" });
  await s.comes("completed");
  expect(steps).toBe(2);
  expect(await s.task("t")).toMatchObject({ epoch: 1 });
});

test.each([
  ["happened", { answer: "happened", receipt: '{"id": 7}' }, "completed", { id: 7 }],
  ["happened, and nobody has the receipt", { answer: "happened", receipt: " " }, "completed", null],
  ["did not", { answer: "not" }, "completed", "done now"],
  ["given up", { answer: "fail" }, "failed", undefined],
])("an effect in doubt: %s", async (_, answer, state, result) => {
  let tries = 0;
  await using s = await at("in_doubt", ({ effect }) =>
    effect("post", {
      run: () => {
        if (++tries > 1) return "done now";
        throw new Error("reset");
      },
    }),
  );
  expect(await s.buttons()).toEqual(["happened", "not", "fail", "cancel"]);
  const post = (fields: Record<string, string>) =>
    s.boss.post("/ui/tasks/t/resolve", { question: s.question, ...fields });
  expect((await post({ answer: "happened", receipt: "{oops" })).status).toBe(422);
  expect((await post({})).status).toBe(422);
  expect((await post({ ...answer, question: "other" } as never)).status).toBe(409);
  expect((await s.task("t")).state).toBe("in_doubt");
  expect((await post(answer as never)).status).toBe(303);
  await s.comes(state);
  if (result !== undefined) expect(await s.task("t")).toMatchObject({ result });
});
