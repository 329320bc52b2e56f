import { afterAll, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import { startModel, text } from "../../infra/local/model.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { anthropic } from "../../shared/adapters/anthropic.ts";
import { type Agent, defineAgent } from "../../shared/agent.ts";
import { buryGivenUp } from "../../shared/dispatch/advisories.ts";
import { cancel } from "../../shared/dispatch/operate.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import { total } from "../../shared/reconcile/figures/tally.ts";
import { serve } from "../../shared/runner/serve.ts";
import { isFinal } from "../../shared/task/table.ts";
import { AGENT, type Bench, bench } from "../support/bench.ts";
import { dead, dieAfter } from "../support/faults/death.ts";
import { MODEL } from "../support/http/asking.ts";
import { reconciled } from "../support/reconciling.ts";
import { next } from "../support/servers/bus.ts";
import { testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const never = new AbortController().signal;
const MAX_DELIVER = 10;
/** At $2 and $10 for a million tokens: $0.30. */
const usage = { input_tokens: 100_000, output_tokens: 10_000 };
const paid = { turns: 1, inputTokens: 100_000, outputTokens: 10_000, usd: expect.closeTo(0.3, 6) };

const agent = defineAgent({
  run: async ({ llm }) => {
    await llm("first", { model: MODEL, prompt: "What is it?", maxTokens: 20_000 });
    return llm("second", { model: MODEL, prompt: "And then?", maxTokens: 20_000 });
  },
});

/** One turn is paid and journaled, another is asked for; then the task's holder dies. */
async function stage(): Promise<Bench> {
  const model = await startModel(() => ({ ...text("A catch."), usage }));
  const b = await bench(nats, "nats-kv", agent, { ackWait: 2_000, crashLimit: 2, maxDeliver: MAX_DELIVER });
  Object.assign(b.deps, { model: anthropic({ apiKey: "test", baseUrl: model.url }) });
  await b.submit({}, { id: "t" });
  await dieAfter(b, agent, (head) => head.count >= 3);
  expect(await b.task("t")).toMatchObject({ state: "running", journaled: 0, spent: { turns: 0, usd: 0 } });
  return Object.assign(b, {
    [Symbol.asyncDispose]: async () => {
      await b.deps[Symbol.asyncDispose]();
      await model[Symbol.asyncDispose]();
    },
  });
}

const drained = (b: Bench, other?: Agent) =>
  until("t is over", async () => {
    await b.drain(other);
    return isFinal(await b.task("t"));
  });

/** The document knows what was paid, and the report what was asked for in vain. */
async function isOnTheBooks(b: Bench): Promise<void> {
  expect(await b.task("t")).toMatchObject({ journaled: 3, spent: paid });
  const { spent, respent, created } = total((await reconciled(b.deps)).report.agents);
  expect({ spent, respent: respent.turns, created }).toEqual({ spent: paid, respent: 1, created: 1 });
}

test("dollars of a holder that died are on the books when an operator cancels its task", async () => {
  await using b = await stage();
  expect(await cancel(b.deps, "t")).toMatchObject({ state: "running" });
  await drained(b);
  expect(await b.task("t")).toMatchObject({ state: "cancelled" });
  await isOnTheBooks(b);
});

test("…also when its successor was told to stop before it opened the journal", async () => {
  await using b = await stage();
  const stop = new AbortController();
  const { store } = b.deps;
  const replace: typeof store.replace = async (task, seen) => {
    const written = await store.replace(task, seen);
    if (task.state === "running" && task.started) stop.abort();
    return written;
  };
  const deps: Deps = { ...b.deps, store: { ...store, replace } };
  expect(await serve(deps, { name: AGENT, agent, mode: "once", stop: stop.signal })).toEqual({
    "handed-off": 1,
  });
  expect(await b.task("t")).toMatchObject({ state: "dispatched", released: true, spent: { turns: 0 } });
  expect(await cancel(b.deps, "t")).toMatchObject({ state: "cancelled" });
  await isOnTheBooks(b);
});

test("…when it is a dead letter by a crash loop", async () => {
  await using b = await stage();
  // The second start is silent too; the third finds that the first one got further; then two more are a loop.
  for (const fence of [2, 3, 4]) await dieAfter(b, agent, (head) => head.fence >= fence);
  await drained(b);
  expect(await b.task("t")).toMatchObject({ state: "failed", error: { code: "crash_loop" } });
  await isOnTheBooks(b);
});

test("…when its message is given up", async () => {
  await using b = await stage();
  for (let deliveries = 1; deliveries < MAX_DELIVER; deliveries++) await (await next(b.deps, b.queue)).nak(0);
  expect(await b.deps.bus.pull(b.queue, 1_000).delivery).toBeUndefined();
  expect(await buryGivenUp(b.deps, never)).toBe(1);
  expect(await b.task("t")).toMatchObject({ state: "failed", error: { code: "deliveries_exhausted" } });
  await isOnTheBooks(b);
});

test("…when the next version of its agent does not accept its input", async () => {
  await using b = await stage();
  await drained(b, defineAgent({ input: z.object({ city: z.string() }), run: () => dead() }));
  expect(await b.task("t")).toMatchObject({ state: "failed", error: { code: "input_invalid" } });
  await isOnTheBooks(b);
});
