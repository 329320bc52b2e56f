import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { PawlError } from "../../shared/errors/errors.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import type { Claim, TaskStore } from "../../shared/ports/store.ts";
import { instant, takeLease } from "../../shared/runner/lease.ts";
import { serve } from "../../shared/runner/serve.ts";
import { AGENT, agentOf, type Bench, bench } from "../support/bench.ts";
import { claimOf, registerIn } from "../support/servers/registers.ts";
import { testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const never = new AbortController().signal;
const idle = agentOf(() => {});

/** Task t, claimed by a runner that died at once. */
async function claimedByTheDead(b: Bench): Promise<Claim> {
  await b.submit({}, { id: "t" });
  const died = new Error("died");
  const replace: TaskStore["replace"] = async (task, revision) => {
    await b.deps.store.replace(task, revision);
    throw died;
  };
  const deps: Deps = { ...b.deps, store: { ...b.deps.store, replace } };
  expect(await serve(deps, { name: AGENT, agent: idle, mode: "once", stop: never })).toEqual({ left: 1 });
  const task = await b.task("t");
  if (task.state !== "running") throw new Error(`it is ${task.state}`);
  return task;
}

test("a holder that is answered from the past loses its lease once a later claim is attested", async () => {
  await using b = await bench(nats, "nats-kv", idle, { ackWait: 3_000 });
  await b.submit({}, { id: "t" });
  const fresh = await b.deps.bus.pull(b.queue, 30_000).delivery;
  if (!fresh) throw new Error("not delivered");
  const claim = { ...claimOf(1), createdAt: (await b.task("t")).createdAt };
  const past = { ...(await b.task("t")), ...claim, state: "running" } as never;
  const attest = registerIn(b.deps.store);
  const store = { ...b.deps.store, attest, get: async () => ({ task: past, revision: "1" }) };
  const lease = takeLease({ ...b.deps, store }, { ...fresh, current: async () => true }, "t");
  lease.grant(claim, instant(b.deps));
  expect(await lease.beat()).toBe(true);
  expect(await attest({ ...claim, fence: 2, token: "f2" })).toBeDefined();
  expect(await lease.beat()).toBe(false);
  expect(lease.lost.aborted).toBe(true);
  await lease.release();
});

test("a successor's wait begins when its claim is attested, not before", async () => {
  await using b = await bench(nats, "nats-kv", idle, { ackWait: 1_500 });
  const dead = await claimedByTheDead(b);
  const register = registerIn(b.deps.store);
  const order: string[] = [];
  const attest: TaskStore["attest"] = async (claim, seen) => {
    const isAway = order.length < 2;
    order.push(`${isAway ? "asked" : "attested"} ${claim.fence}`);
    if (isAway) throw new PawlError("store_unavailable", "away");
    return register(claim, seen);
  };
  const log: Deps["log"] = (level, event, fields) => {
    if (event === "takeover.wait") order.push(event);
    b.deps.log(level, event, fields);
  };
  const deps: Deps = { ...b.deps, log, store: { ...b.deps.store, attest } };
  const stop = new AbortController();
  const served = serve(deps, { name: AGENT, agent: idle, mode: "forever", stop: stop.signal });
  await until("it is completed", async () => (await b.task("t")).state === "completed");
  stop.abort(new Error("told to stop"));
  await served;
  expect(order.slice(0, order.indexOf("takeover.wait"))).toContain("attested 2");
  expect(await register(dead)).toBeUndefined();
});

test("a first claim attests nothing before its first beat", async () => {
  await using b = await bench(nats, "nats-kv", idle);
  const attest: TaskStore["attest"] = () => {
    throw new Error("asked");
  };
  await b.submit({}, { id: "t" });
  const deps: Deps = { ...b.deps, store: { ...b.deps.store, attest } };
  expect(await serve(deps, { name: AGENT, agent: idle, mode: "once", stop: never })).toEqual({
    completed: 1,
  });
});
