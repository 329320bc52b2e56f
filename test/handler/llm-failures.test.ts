import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Reply, type Script, startModel, text } from "../../infra/local/model.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { anthropic } from "../../shared/adapters/anthropic.ts";
import { defineAgent } from "../../shared/agent.ts";
import { cancel } from "../../shared/dispatch/operate.ts";
import { PawlError } from "../../shared/errors/errors.ts";
import { lost } from "../../shared/journal/budget.ts";
import { isFinal } from "../../shared/task/table.ts";
import { bench } from "../support/bench.ts";
import { disturbed } from "../support/faults/disturb.ts";
import { asking, lookup, MODEL, use, uses } from "../support/http/asking.ts";
import { testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

describe("an API that fails", () => {
  test.each([408, 429, 500, 503, 529])(
    "%i is asked again under the heartbeat, and nothing is charged for it",
    async (status) => {
      await using b = await asking(nats, (_, n) =>
        n === 1 ? { status, headers: { "retry-after": "0.05" } } : text("ok"),
      );
      expect(await b.finish()).toMatchObject({ state: "completed", executions: 1, spent: { turns: 1 } });
      expect((await b.journal()).map((entry) => entry.kind)).toEqual([
        "intent",
        "undone",
        "intent",
        "receipt",
      ]);
      expect(lost(await b.journal()).turns).toBe(0);
    },
  );

  test("a long retry-after frees the lane: the task is tried again then", async () => {
    await using b = await asking(nats, (_, n) =>
      n === 1 ? { status: 429, headers: { "retry-after": "90" } } : text("ok"),
    );
    await b.submit({}, { id: "t" });
    await b.drain();
    const task = await b.task("t");
    expect(task.state).toBe("scheduled");
    expect((task as { dueAt: number }).dueAt - Date.now()).toBeGreaterThan(80_000);
  });

  test.each([
    [400, "model_invalid", "max_tokens is too large"],
    [401, "model_invalid", "invalid x-api-key"],
    [404, "model_invalid", "no such model"],
    [400, "model_context", "prompt is too long: 250000 tokens > 200000 maximum"],
  ])("%i is final: %s", async (status, code, message) => {
    await using b = await asking(nats, () => ({ status, message }));
    expect(await b.finish()).toMatchObject({
      state: "failed",
      error: { code, message: expect.stringContaining(message) },
    });
    expect(b.model.requests).toHaveLength(1);
  });

  test("a cut stream is asked again, and what it may have cost is on the book", async () => {
    await using b = await asking(
      nats,
      (_, n) => ({ ...text("whole answer"), ...(n === 1 && { cutAfter: 3 }) }) as Reply,
    );
    expect(await b.finish()).toMatchObject({
      state: "completed",
      result: { text: "whole answer" },
      spent: { turns: 1 },
    });
    expect((await b.journal()).map((entry) => entry.kind)).toEqual(["intent", "unsure", "intent", "receipt"]);
    expect(lost(await b.journal())).toMatchObject({ turns: 1, outputTokens: 8_192 });
  });

  test("a call that stalls is aborted when the task must stop, and handed off", async () => {
    await using b = await asking(
      nats,
      () => ({ ...text("never"), stallAfter: 2 }) as Reply,
      {},
      {},
      { stopGrace: 900 },
    );
    await b.submit({}, { id: "t" });
    const stop = new AbortController();
    const drained = b.drain(undefined, stop.signal);
    await until("it was asked", async () => b.model.requests.length === 1);
    stop.abort(new Error("told to stop"));
    await drained;
    expect(await b.task("t")).toMatchObject({ state: "dispatched", released: true, attempts: 0 });
    expect(b.model.requests).toMatchObject([{ hungUp: true }]);
  });

  test("a call in progress is aborted when the task is cancelled", async () => {
    const script = () => ({ ...text("never"), stallAfter: 2 }) as Reply;
    await using b = await asking(nats, script, {}, {}, { ackWait: 2_000 });
    await b.submit({}, { id: "t" });
    const drained = b.drain();
    await until("it was asked", async () => b.model.requests.length === 1);
    await cancel(b.deps, "t");
    await drained;
    expect(await b.task("t")).toMatchObject({ state: "cancelled", released: true });
    expect(b.model.requests).toMatchObject([{ hungUp: true }]);
    // It may have cost something, and is charged as if it had.
    expect(lost(await b.journal()).turns).toBe(1);
  });

  test("a call in progress is aborted when the lease is lost, and nothing more is written", async () => {
    const script = () => ({ ...text("never"), stallAfter: 2 }) as Reply;
    await using b = await asking(nats, script, {}, {}, { ackWait: 1_000 });
    await b.submit({}, { id: "t" });
    const { store } = b.deps;
    const stop = new AbortController();
    const drained = b.drain(undefined, stop.signal);
    await until("it was asked", async () => b.model.requests.length === 1);
    const before = await b.task("t");
    const journal = await b.journal();
    // The store is away: no beat is whole any more, and the lease runs out.
    const gone = async () => {
      throw new PawlError("store_unavailable", "no answer");
    };
    Object.assign(b.deps, { store: { ...store, get: gone } });
    await until("it hung up", async () => b.model.requests[0]?.hungUp ?? false);
    expect(b.deps.logged.map(({ event }) => event)).toContain("lease.lost");
    stop.abort(new Error("told to stop"));
    await drained;
    Object.assign(b.deps, { store });
    expect((await b.task("t")).stamp).toBe(before.stamp);
    expect(await b.journal()).toEqual(journal);
  });

  test("without a key the task fails by name", async () => {
    await using b = await asking(nats, () => text("x"));
    Object.assign(b.deps, { model: undefined });
    expect(await b.finish()).toMatchObject({
      error: { code: "model_invalid", message: expect.stringMatching(/ANTHROPIC_API_KEY is not set/) },
    });
  });
});

test("a crash between any two entries: no stored turn is asked for again, and the text is the journal's", async () => {
  const script: Script = (_, n) =>
    n < 4 ? uses(use("lookup", { city: `c${n}` }, `id${n}`)) : text(`answer ${n}`);
  const dead = async (at: number) => {
    await using b = await asking(nats, script, { tools: [lookup((city) => city)] }, {}, { ackWait: 6_000 });
    const { store } = b.deps;
    const dying = disturbed(store, at, async () => {
      throw new PawlError("lease_lost", "dead");
    });
    Object.assign(b.deps, { store: dying });
    const task = await b.finish();
    const entries = await b.journal();
    const receipts = entries.filter((entry) => entry.kind === "receipt" && entry.key.startsWith("ask/turn"));
    const asked = b.model.requests.length;
    const wasLost = lost(entries).turns;
    // Every request is a stored turn, or one that the journal knows to be lost.
    expect(asked - wasLost, `died at write ${at}`).toBe(receipts.length);
    expect(wasLost).toBeLessThanOrEqual(1);
    const last = receipts.at(-1) as { value?: { content: { text: string }[] } };
    expect(task).toMatchObject({ state: "completed", result: { text: last.value?.content[0]?.text } });
  };
  await Promise.all(Array.from({ length: 12 }, (_, i) => dead(i + 1)));
});

describe("the budget", () => {
  const costly = { usage: { input_tokens: 1_000, output_tokens: 1_000 } };
  // Of sonnet: 2 and 10 dollars a million. A turn of 1,000 tokens out sets aside at least a cent, and costs 1.2 cents.
  const looping: Script = (_, n) => ({ ...uses(use("lookup", { city: "x" }, `u${n}`)), ...costly }) as Reply;

  test("a call that could overspend is not made, and the journal is kept", async () => {
    await using b = await asking(
      nats,
      looping,
      { tools: [lookup(() => 1)], maxTokens: 1_000 },
      { budgetUsd: 0.1 },
    );
    const task = await b.finish();
    expect(task).toMatchObject({ state: "failed", error: { code: "budget_exceeded" } });
    expect(task.spent.usd).toBeLessThanOrEqual(0.1);
    expect(task.spent.turns).toBe(b.model.requests.length);
    expect(task.spent.turns).toBeGreaterThan(3);
    expect(task.journaled).toBeGreaterThan(6);
  });

  test("is one for all attempts: what was paid is counted once, and not paid again", async () => {
    const model = await startModel(() => ({ ...text("x"), ...costly }) as Reply);
    const agent = defineAgent({
      limits: { budgetUsd: 0.06, attempts: 4, backoff: { first: "5ms" } },
      run: async ({ llm, attempt }) => {
        for (let i = 1; i <= attempt; i++) await llm("ask", { model: MODEL, prompt: "?", maxTokens: 1_000 });
        if (attempt < 4) throw new Error("again");
      },
    });
    await using b = await bench(nats, "nats-kv", agent);
    Object.assign(b.deps, { model: anthropic({ apiKey: "test", baseUrl: model.url }) });
    await b.submit({}, { id: "t" });
    await until("t is over", async () => {
      await b.drain();
      return isFinal(await b.task("t"));
    });
    const task = await b.task("t");
    // Four turns at 1.2 cents fit; asked for again by each attempt they would be ten.
    expect(task).toMatchObject({ state: "completed", spent: { turns: 4 }, saved: { turns: 6 } });
    expect(task.spent.usd).toBeCloseTo(0.048, 10);
    expect(model.requests).toHaveLength(4);
    await model[Symbol.asyncDispose]();
  });

  test("parallel calls set aside together: none of them can take what another has", async () => {
    const model = await startModel(async () => ({ ...text("x"), delay: 50, ...costly }) as Reply);
    const agent = defineAgent({
      limits: { budgetUsd: 0.05, attempts: 1 },
      run: async ({ llm }) => {
        const asked = Array.from({ length: 10 }, (_, i) =>
          llm(`ask ${i}`, { model: MODEL, prompt: "?", maxTokens: 1_000 }).then(
            () => "answered",
            (error: { code: string }) => error.code,
          ),
        );
        return Promise.all(asked);
      },
    });
    await using b = await bench(nats, "nats-kv", agent);
    Object.assign(b.deps, { model: anthropic({ apiKey: "test", baseUrl: model.url }) });
    await b.submit({}, { id: "t" });
    await b.drain();
    const task = await b.task("t");
    const answers = (task as unknown as { result: string[] }).result;
    expect(new Set(answers)).toEqual(new Set(["answered", "budget_exceeded"]));
    expect(model.requests).toHaveLength(answers.filter((one) => one === "answered").length);
    expect(task.spent.usd).toBeLessThanOrEqual(0.05);
    await model[Symbol.asyncDispose]();
  });

  test("a lost answer stays charged at the most it could have cost", async () => {
    const script: Script = () => ({ ...text("x"), cutAfter: 2 }) as Reply;
    await using b = await asking(nats, script, { maxTokens: 1_000 }, { budgetUsd: 0.035, attempts: 1 });
    const task = await b.finish();
    expect(task).toMatchObject({ state: "failed", error: { code: "budget_exceeded" }, spent: { turns: 0 } });
    expect(lost(await b.journal()).usd).toBeLessThanOrEqual(0.035);
    expect(b.model.requests.length).toBe(2);
  });

  test("a model whose price nobody knows is refused where there is a budget, and a price can be given", async () => {
    const request = { model: "claude-next-9" };
    await using b = await asking(nats, () => text("x"), request, { budgetUsd: 1 });
    expect(await b.finish()).toMatchObject({ error: { code: "price_unknown" } });
    await using free = await asking(nats, () => text("x"), request);
    expect(await free.finish()).toMatchObject({ state: "completed", spent: { usd: 0, turns: 1 } });
  });
});
