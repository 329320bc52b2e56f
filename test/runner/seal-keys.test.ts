import { afterAll, beforeAll, expect, test } from "vitest";
import type { Wired } from "../../functions/wiring/wire.node.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { serve } from "../../shared/runner/serve.ts";
import { AGENT, agentOf, type Bench, bench } from "../support/bench.ts";
import { testNats, wired } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const KEY = "0123456789abcdef";
const echo = agentOf(({ input }) => input);

async function submittedWithKey(b: Bench): Promise<Wired> {
  const keyed = await wired({ ...b.world.config, sealKeys: [KEY] });
  await submit(keyed, { agent: AGENT, lanes: 1, input: {}, id: "t" });
  return keyed;
}

test("a runner without the key that a document was sealed with puts the message back, and one that has the key runs it", async () => {
  await using b = await bench(nats, "nats-kv", echo, { ackWait: 1_000 });
  await using keyed = await submittedWithKey(b);
  const never = new AbortController().signal;
  expect(await serve(b.deps, { name: AGENT, agent: echo, mode: "once", stop: never })).toEqual({
    "other-key": 1,
  });
  expect(b.deps.logged.at(-1)).toMatchObject({ level: "error", event: "task.handled" });
  expect(b.deps.logged.at(-1)?.fields.detail).toMatch(
    /is sealed with a key that PAWL_SEAL_KEY does not have \(its id is "[\w-]{6}"\)/,
  );
  expect((await keyed.store.get("t"))?.task).toMatchObject({ state: "dispatched", settled: [] });
  expect(await serve(keyed, { name: AGENT, agent: echo, mode: "drain", stop: never })).toEqual({
    completed: 1,
  });
  expect((await keyed.store.list({ state: "failed" }, 10)).tasks).toEqual([]);
});

test("it keeps the message apart when nobody with the key came for it, and the lane goes on", async () => {
  await using b = await bench(nats, "nats-kv", echo, { ackWait: 1_000, maxDeliver: 10 });
  await using keyed = await submittedWithKey(b);
  expect(await b.drain()).toEqual({ "other-key": 5, "dead-letter": 1 });
  expect((await keyed.store.get("t"))?.task.state).toBe("dispatched");
  const { tasks } = await b.deps.store.list({ state: "failed" }, 10);
  expect(tasks).toMatchObject([{ error: { code: "seal_key_unknown" }, settled: [{ seq: 1 }] }]);
});
