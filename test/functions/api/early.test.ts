import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { signal } from "../../../shared/dispatch/operate.ts";
import { agentOf } from "../../support/bench.ts";
import { ALL, apiStage } from "../../support/http/api.ts";
import { testNats } from "../../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const asks = agentOf(async ({ approval, waitFor }) => {
  const { by } = await approval("reply");
  return { by, paid: await waitFor("paid") };
});

test("an answer under a name that nobody waits for is refused with what is waited for, and kept where it is said to be early", async () => {
  await using s = await apiStage(nats);
  const boss = await s.token("boss", ALL);
  await s.submit({}, { id: "t" });
  const tell = (path: string, body: object) => s.call(boss, "POST", `/v1/tasks/t/${path}`, body);
  const unasked = (detail: string) => ({
    status: 409,
    body: { code: "signal_unasked", detail: expect.stringContaining(detail) },
  });
  // It has not begun: it waits for nothing yet.
  expect(await tell("signal", { name: "paid" })).toMatchObject(
    unasked('Task t is dispatched and waits for nothing now, and not for event "paid"'),
  );
  await s.drain(asks);
  expect(await tell("approvals/replyy", { approved: true })).toMatchObject(
    unasked('Task t waits for approval "reply", and not for approval "replyy"'),
  );
  expect(await tell("signal", { name: "reply" })).toMatchObject(unasked('and not for event "reply"'));
  expect((await s.task("t")).signals).toEqual([]);
  // As the design has it: any answer is kept in any state that is not final, if that is meant.
  expect(await tell("signal", { name: "paid", value: 3, early: true })).toMatchObject({
    body: { state: "waiting" },
  });
  for (let i = 0; i < 2; i++)
    expect(await tell("approvals/reply", { approved: true })).toMatchObject({
      body: { state: "dispatched" },
    });
  await s.drain(asks);
  expect(await s.task("t")).toMatchObject({ state: "completed", result: { by: "boss", paid: 3 } });
});

test("names of what is waited for are bounded, however many and long they are", async () => {
  await using s = await apiStage(nats);
  const boss = await s.token("boss", ALL);
  await s.submit({}, { id: "many" });
  const names = Array.from({ length: 9 }, (_, i) => `${i}${"n".repeat(100)}`);
  await s.drain(agentOf(({ waitFor }) => Promise.all(names.map((name) => waitFor(name)))));
  const { body } = await s.call(boss, "POST", "/v1/tasks/many/signal", { name: "other" });
  expect(body).toMatchObject({
    code: "signal_unasked",
    detail: expect.stringMatching(/ and 4 more, and not for /),
  });
  expect(String(body.detail).length).toBeLessThan(1_000);
  // Pawl's own words (a child that is over, say) are kept whenever they come.
  expect((await signal(s.deps, "many", "child:c-1", null)).signals).toHaveLength(1);
});
