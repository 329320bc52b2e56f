import { afterAll, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { tool } from "../../shared/agent.ts";
import { scripted } from "../../shared/testing/scripted-model.ts";
import { asks } from "../../shared/testing.ts";
import { agentOf } from "../support/bench.ts";
import { pagesStage } from "../support/http/pages.ts";
import { testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test("two calls of tools that ask first: one is approved on the dashboard, the other refused by the API", async () => {
  await using s = await pagesStage(nats);
  const sent: string[] = [];
  const send = tool({
    name: "send",
    description: "Sends",
    input: z.object({ to: z.string() }),
    approve: true,
    run: ({ to }) => void sent.push(to),
  });
  const evil = "<script>alert(1)</script>";
  const done = { content: [{ type: "text", text: "done" }], usage: { cache_read_input_tokens: 1_200 } };
  const model = scripted([asks(["send", { to: "Ada" }], ["send", { to: evil }]), done]);
  Object.assign(s.deps, { model });
  const agent = agentOf(({ llm }) => llm("ask", { model: "claude-sonnet-5-5", prompt: "?", tools: [send] }), {
    attempts: 1,
  });
  await s.submit({}, { id: "t" });
  const comes = (isThere: (task: Awaited<ReturnType<typeof s.task>>) => boolean) =>
    until("t is there", async () => {
      await s.drain(agent);
      return isThere(await s.task("t"));
    });
  await comes((task) => task.state === "waiting");
  const boss = await s.visitor("boss");
  const page = (await boss.get("/ui/tasks/t")).text;
  expect(page).toContain("May the model use send?");
  expect(page).toContain("&lt;script&gt;alert(1)");
  expect(page).not.toContain(evil);
  const { waitingFor = [] } = (await s.task("t")) as { readonly waitingFor?: readonly string[] };
  const [first = "", second = ""] = waitingFor.map((one) => one.slice("approval:".length));
  expect([first, second]).toEqual([
    expect.stringContaining("use_1_send@"),
    expect.stringContaining("use_2_send@"),
  ]);
  for (const name of [first, second]) expect(page).toContain(`name="name" value="${name}"`);

  const question = await boss.field("/ui/tasks/t", "question");
  const answered = await boss.post("/ui/tasks/t/answer", { question, name: first, approved: "yes" });
  expect(answered.status).toBe(303);
  await comes((task) => task.state === "waiting" && !task.waitingFor.includes(`approval:${first}`));
  expect(sent).toEqual(["Ada"]);
  // What was approved is approved once, and for what was shown.
  const say = (name: string, body: object) =>
    s.request(`/v1/tasks/t/approvals/${encodeURIComponent(name)}`, {
      method: "POST",
      headers: { authorization: `Bearer ${boss.token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const other = second.replace(/.$/, (last) => (last === "0" ? "1" : "0"));
  for (const name of [first, other])
    expect((await say(name, { approved: true, note: "now" })).status).toBe(409);
  expect((await say(second, { approved: false, note: "no scripts" })).status).toBe(200);
  await comes((task) => task.state === "completed");
  expect(sent).toEqual(["Ada"]);
  expect(model.requests.at(-1)?.messages).toMatchObject([
    {},
    {},
    {
      content: [
        { content: "null" },
        { is_error: true, content: expect.stringMatching(/refused.* no scripts$/) },
      ],
    },
  ]);
  // The timeline keeps what was asked, and says what the API had cached.
  const over = (await boss.get("/ui/tasks/t")).text;
  expect(over).toContain("May the model use send?");
  expect(over).toContain("(1,200 cached)");
  expect(over).not.toContain(evil);
});
