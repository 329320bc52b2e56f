import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { defineAgent } from "../../shared/agent.ts";
import { serve } from "../../shared/runner/serve.ts";
import { AGENT, bench } from "../support/bench.ts";
import { testNats, wired } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const runs: string[] = [];
const agent = defineAgent({ run: ({ id }) => void runs.push(id) });

test("a task that was published directly and handed off fails with its message, which counts as no dispatch", async () => {
  await using b = await bench(nats, "nats-kv", agent);
  const data = new TextEncoder().encode(JSON.stringify({ v: 1, input: { text: "x".repeat(200) } }));
  await b.deps.bus.publish(b.queue, { taskId: "t", data, msgId: "m", headers: {} });
  const stop = new AbortController();
  const stopped = defineAgent({
    run: ({ signal }) => {
      stop.abort(new Error("told to stop"));
      signal.throwIfAborted();
    },
  });
  expect(await serve(b.deps, { name: AGENT, agent: stopped, mode: "once", stop: stop.signal })).toEqual({
    "handed-off": 1,
  });
  expect(await b.task("t")).toMatchObject({ state: "dispatched", seq: 1 });
  await using narrow = await wired({
    ...b.world.config,
    settings: { ...b.world.config.settings, inputLimit: 100 },
  });
  const never = new AbortController().signal;
  expect(await serve(narrow, { name: AGENT, agent, mode: "once", stop: never })).toEqual({
    "dead-letter": 1,
  });
  const failed = {
    state: "failed",
    error: { code: "input_too_large" },
    settled: [{ seq: 1, outcome: "failed" }],
  };
  expect(await b.task("t")).toMatchObject(failed);
  expect((await b.deps.store.list({}, 10)).tasks).toHaveLength(1);
  expect(runs).toEqual([]);
});
