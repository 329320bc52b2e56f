import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hearWords } from "../../infra/drills/outside/words.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { cancel, redrive, resolve } from "../../shared/dispatch/operate.ts";
import { isFinal } from "../../shared/task/table.ts";
import { agentOf, type Bench, bench, untilAborted } from "../support/bench.ts";
import { oneOfEach, testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

async function over(b: Bench, id = "t") {
  await until(`${id} is over`, async () => {
    await b.drain();
    return isFinal(await b.task(id));
  });
  return b.task(id);
}

describe.each(oneOfEach)("$kind", ({ kind, here }) => {
  test.skipIf(!here)(
    "what is queued is cancelled at once, and its message leaves the queue unrun",
    async () => {
      let runs = 0;
      await using b = await bench(
        nats,
        kind,
        agentOf(() => ++runs),
      );
      await b.submit({}, { id: "t" });
      expect(await cancel(b.deps, "t")).toMatchObject({ state: "cancelled" });
      await b.drain();
      expect(runs).toBe(0);
      expect(await b.deps.bus.state(b.queue)).toEqual({ pending: 0, inFlight: 0 });
      expect((await b.task("t")).settled).toMatchObject([{ seq: 1 }]);
      await expect(cancel(b.deps, "t")).rejects.toMatchObject({ code: "illegal_transition" });
    },
  );

  test.skipIf(!here)("what runs is aborted within a heartbeat", async () => {
    const agent = agentOf(({ signal }) => untilAborted(signal));
    await using b = await bench(nats, kind, agent, { ackWait: 2_000 });
    await b.submit({}, { id: "t" });
    const words = hearWords(b.deps.nc, b.queue);
    const beats = () => words.filter(({ word }) => word === "+WPI").length;
    const drained = b.drain();
    await until("it runs", async () => (await b.task("t")).state === "running");
    expect(await cancel(b.deps, "t")).toMatchObject({ state: "running" });
    const before = beats();
    await until("it is cancelled", async () => (await b.task("t")).state === "cancelled");
    // The one that was under way, and the one that saw it.
    expect(beats() - before).toBeLessThanOrEqual(2);
    await drained;
  });

  test.skipIf(!here)("a dead letter is redriven on its journal, and from scratch without it", async () => {
    const ran: string[] = [];
    const keys: string[] = [];
    let isMended = false;
    const agent = agentOf(
      async ({ step, effect }) => {
        await step("one", () => void ran.push("one"));
        await effect("post", { run: (key) => void keys.push(key) });
        if (!isMended) throw new Error("broken");
        return "done";
      },
      { attempts: 1 },
    );
    await using b = await bench(nats, kind, agent);
    await b.submit({}, { id: "t" });
    expect(await over(b)).toMatchObject({
      state: "failed",
      error: { code: "attempts_exhausted" },
      journaled: 3,
    });
    await redrive(b.deps, "t");
    expect(await over(b)).toMatchObject({ state: "failed", attempts: 1, dispatches: 2 });
    expect([ran, keys.length]).toEqual([["one"], 1]);
    isMended = true;
    await redrive(b.deps, "t", { fromScratch: true });
    expect(await over(b)).toMatchObject({ state: "completed", result: "done", epoch: 1, journaled: 3 });
    // Done again, on purpose, and under another key, or its receiver would take it for the first.
    expect([ran, new Set(keys).size]).toEqual([["one", "one"], 2]);
    await expect(redrive(b.deps, "t")).rejects.toMatchObject({ code: "illegal_transition" });
  });
});

test("cancelled in the middle of an effect: with its receipt it is cancelled, without one it is in doubt", async () => {
  for (const outcome of ["receipt", "unsure"] as const) {
    let begun = false;
    const agent = agentOf(async ({ effect, signal }) => {
      await effect("post", {
        run: async () => {
          begun = true;
          await new Promise((resolve) => signal.addEventListener("abort", resolve));
          if (outcome === "unsure") throw new Error("connection reset");
          return "posted";
        },
      });
      signal.throwIfAborted();
    });
    await using b = await bench(nats, "nats-kv", agent, { ackWait: 2_000 });
    await b.submit({}, { id: "t" });
    const drained = b.drain();
    await until("it began", async () => begun);
    await cancel(b.deps, "t");
    await drained;
    const task = await b.task("t");
    if (outcome === "receipt") expect(task.state).toBe("cancelled");
    else {
      expect(task).toMatchObject({ state: "in_doubt", effect: "post#1" });
      // Once a person has said what became of it, the cancel holds.
      await resolve(b.deps, "t", { happened: true });
      await until("it is cancelled", async () => {
        await b.drain();
        return (await b.task("t")).state !== "dispatched";
      });
      expect((await b.task("t")).state).toBe("cancelled");
    }
  }
});

test("a redrive inside the duplicate window is not swallowed", async () => {
  let runs = 0;
  const agent = agentOf(
    () => {
      if (++runs < 4) throw new Error("again");
    },
    { attempts: 1 },
  );
  await using b = await bench(nats, "nats-kv", agent, { duplicateWindow: 120_000 });
  await b.submit({}, { id: "t" });
  for (let i = 0; i < 3; i++) {
    await over(b);
    await redrive(b.deps, "t");
  }
  expect(await over(b)).toMatchObject({ state: "completed", dispatches: 4, attempts: 0 });
});
