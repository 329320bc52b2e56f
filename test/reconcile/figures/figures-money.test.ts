import { afterAll, beforeAll, expect, test } from "vitest";
import { startModel, text } from "../../../infra/local/model.ts";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { anthropic } from "../../../shared/adapters/anthropic.ts";
import { type Agent, defineAgent, Fatal } from "../../../shared/agent.ts";
import { cancel, redrive } from "../../../shared/dispatch/operate.ts";
import { total } from "../../../shared/reconcile/figures/tally.ts";
import { isFinal } from "../../../shared/task/table.ts";
import { type Bench, bench } from "../../support/bench.ts";
import { dieAfter } from "../../support/faults/death.ts";
import { MODEL } from "../../support/http/asking.ts";
import { reconciled } from "../../support/reconciling.ts";
import { testNats } from "../../support/servers/stores.ts";
import { until } from "../../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** At $2 and $10 for a million tokens: $0.30 a turn. */
const usage = { input_tokens: 100_000, output_tokens: 10_000 };
const ask = { model: MODEL, prompt: "What is it?", maxTokens: 20_000 };

async function asking(agent: Agent): Promise<Bench> {
  const model = await startModel(() => ({ ...text("A catch."), usage }));
  const b = await bench(nats, "nats-kv", agent, { ackWait: 2_000, crashLimit: 2 });
  Object.assign(b.deps, { model: anthropic({ apiKey: "test", baseUrl: model.url }) });
  await b.submit({}, { id: "t" });
  return Object.assign(b, {
    [Symbol.asyncDispose]: async () => {
      await b.deps[Symbol.asyncDispose]();
      await model[Symbol.asyncDispose]();
    },
  });
}

async function money(b: Bench): Promise<{ usd: number; respent: number }> {
  const { spent, respent } = total((await reconciled(b.deps)).report.agents);
  return { usd: Math.round(spent.usd * 100) / 100, respent: respent.turns };
}

const over = (b: Bench) =>
  until("t is over", async () => {
    await b.drain();
    return isFinal(await b.task("t"));
  });

test.each([false, true])(
  "dollars of a dead letter that was reported and redriven (anew: %s)",
  async (anew) => {
    let runs = 0;
    const agent = defineAgent({
      run: async ({ llm }) => {
        await llm("first", ask);
        if (++runs === 1) throw new Fatal("not this time");
        return anew ? "done" : llm("second", ask);
      },
    });
    await using b = await asking(agent);
    await b.drain();
    expect(await money(b)).toEqual({ usd: 0.3, respent: 0 });
    await redrive(b.deps, "t", { fromScratch: anew });
    await b.drain();
    expect(await b.task("t")).toMatchObject({ state: "completed" });
    expect(await money(b)).toEqual({ usd: 0.6, respent: 0 });
    expect(await money(b)).toEqual({ usd: 0.6, respent: 0 });
  },
);

const twoTurns = defineAgent({
  run: async ({ llm }) => {
    await llm("first", ask);
    return llm("second", ask);
  },
});

test.each(["cancelled", "failed"])(
  "dollars paid by a holder that died, of a task that is %s after a report",
  async (end) => {
    await using b = await asking(twoTurns);
    // One turn is paid and journaled, another is asked for.
    await dieAfter(b, twoTurns, (head) => head.count >= 3);
    await money(b);
    if (end === "cancelled") await cancel(b.deps, "t");
    else for (const fence of [2, 3, 4]) await dieAfter(b, twoTurns, (head) => head.fence >= fence);
    await over(b);
    expect(await b.task("t")).toMatchObject({ state: end });
    expect(await money(b)).toEqual({ usd: 0.3, respent: 1 });
    expect(await money(b)).toEqual({ usd: 0.3, respent: 1 });
  },
);
