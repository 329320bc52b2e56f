import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { cancel } from "../../shared/dispatch/operate.ts";
import { total } from "../../shared/reconcile/figures/tally.ts";
import { encodeEnvelope } from "../../shared/task/envelope.ts";
import { agentOf, type Bench, bench } from "../support/bench.ts";
import { namesOf, reconciled } from "../support/reconciling.ts";
import { oneOfEach, testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** The task's message once more, under another Msg-Id: as its dispatch would, or as somebody who knows no such thing. */
async function publishAgain(b: Bench, taskId: string, headers: Record<string, string>): Promise<void> {
  const { agent, lane, input, inputHash, createdAt: at } = await b.task(taskId);
  const data = encodeEnvelope({ id: taskId, agent, lane, input, inputHash, at, stamp: "x", by: "hand" });
  const sent = await b.deps.bus.publish(b.queue, { taskId, data, msgId: `again:${taskId}`, headers });
  expect(sent).toMatchObject({ kind: "stored" });
}

describe.each(oneOfEach)("$kind", ({ kind, here }) => {
  test.skipIf(!here)("tasks that were cancelled in their queue are no duplicates in a report", async () => {
    await using b = await bench(
      nats,
      kind,
      agentOf(() => "done"),
    );
    for (let i = 0; i < 20; i++) await b.submit({ i }, { id: `t-${i}` });
    for (let i = 0; i < 8; i++)
      expect(await cancel(b.deps, `t-${i}`)).toMatchObject({ state: "cancelled", settled: [] });
    expect(await b.drain()).toEqual({ surplus: 8, completed: 12 });
    for (const id of ["t-0", "t-10", "t-11"]) await publishAgain(b, id, {});
    for (const id of ["t-1", "t-12"]) await publishAgain(b, id, { "Pawl-Dispatch": "1" });
    expect(await b.drain()).toEqual({ surplus: 5 });

    const done = await reconciled(b.deps);
    expect(namesOf(done)).toEqual([]);
    const { classes, cancelled, completed, executedTwice } = total(done.report.agents);
    expect(classes).toMatchObject({ cancelled: 8, duplicate: 5, completed: 12, unexplained: 0 });
    expect({ cancelled, completed, executedTwice }).toEqual({
      cancelled: 8,
      completed: 12,
      executedTwice: 0,
    });
  });
});
