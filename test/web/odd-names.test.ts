import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { agentOf } from "../support/bench.ts";
import { pagesStage } from "../support/http/pages.ts";
import { testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test("an approval whose name holds half a character is shown, and can be answered", async () => {
  await using s = await pagesStage(nats);
  const agent = agentOf(async ({ approval }) => void (await approval("go \ud800!")), { attempts: 1 });
  const boss = await s.visitor("boss");
  await s.submit({}, { id: "t" });
  const comes = (state: string) =>
    until(`t is ${state}`, async () => {
      await s.drain(agent);
      return (await s.task("t")).state === state;
    });
  await comes("waiting");
  const page = await boss.get("/ui/tasks/t");
  expect([page.status, page.text.includes("go \ufffd!")]).toEqual([200, true]);
  const question = await boss.field("/ui/tasks/t", "question");
  const name = await boss.field("/ui/tasks/t", "name");
  const answered = await boss.post("/ui/tasks/t/answer", { question, name, approved: "yes" });
  expect([answered.status, answered.headers.get("location")]).toEqual([303, "/ui/tasks/t?done=approved"]);
  await comes("completed");
  expect((await boss.get("/ui/tasks/t")).status).toBe(200);
});
