import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { setQuota } from "../../shared/quota/quotas.ts";
import { AGENT, agentOf, bench } from "../support/bench.ts";
import { testNats } from "../support/servers/stores.ts";
import { travel } from "../support/time/clocks.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test("a parent whose child is refused by a quota sleeps, spends no attempt, and goes on when there is room", async () => {
  const child = { kind: "agent", name: "child" } as const;
  const ran: string[] = [];
  const parent = agentOf(
    async ({ submit, step }) => {
      await step("before", () => void ran.push("before"));
      return (await submit("child", { n: 1 }, { key: "one" })).id;
    },
    { attempts: 1 },
  );
  await using b = await bench(nats, "nats-kv", parent);
  const { namespace, generation } = b.deps.settings;
  await b.deps.bus.ensure({ namespace, agent: "child", lane: 0, generation });
  Object.assign(b.deps, { lanesOf: (name: string) => (name === "child" ? 1 : undefined) });
  const pass = travel(b.deps);
  await setQuota(b.deps.store, child, { tasks: 0 });
  await b.submit({}, { id: "t" });
  for (let round = 0; round < 2; round++) {
    await b.drain();
    expect(await b.task("t")).toMatchObject({ state: "scheduled", attempts: 0 });
    pass(61_000);
    expect(await dispatchDue(b.deps, AGENT)).toBe(1);
  }
  expect(b.deps.logged.filter(({ event }) => event === "child.refused").length).toBeGreaterThan(0);
  await setQuota(b.deps.store, child, undefined);
  // What was read before is kept for five seconds of the machine's clock.
  Object.assign(b.deps, { store: { ...b.deps.store } });
  await b.drain();
  const done = await b.task("t");
  expect(done).toMatchObject({ state: "completed", attempts: 0, result: expect.stringMatching(/^c-/) });
  expect(ran).toEqual(["before"]);
});
