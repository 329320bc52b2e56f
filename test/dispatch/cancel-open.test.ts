import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { cancel } from "../../shared/dispatch/operate.ts";
import { serve } from "../../shared/runner/serve.ts";
import { AGENT, agentOf, bench } from "../support/bench.ts";
import { dead, dieAfter } from "../support/faults/death.ts";
import { testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const never = new AbortController().signal;

test("a cancel that a successor hears of while it waits for its turn does not throw an open effect away", async () => {
  const posting = agentOf(({ effect }) => effect("post", { run: () => dead() }));
  await using b = await bench(nats, "nats-kv", posting, { ackWait: 2_000 });
  await b.submit({}, { id: "t" });
  await dieAfter(b, posting, (head) => head.count >= 1);
  const served = serve(b.deps, { name: AGENT, agent: posting, mode: "once", stop: never });
  await until("its successor waits for its turn", async () => (await b.task("t")).fence === 2);
  expect(await cancel(b.deps, "t")).toMatchObject({ state: "running", started: false });
  expect(await served).toEqual({ "in-doubt": 1 });
  expect(await b.task("t")).toMatchObject({ state: "in_doubt", effect: "post#1" });
});

test("a try that ends unsure between a cancel's look at the journal and its write is not thrown away", async () => {
  const failing = agentOf(
    ({ effect }) =>
      effect("post", {
        run: () => {
          throw new Error("connection reset");
        },
      }),
    { backoff: { first: "1h", longest: "1h" } },
  );
  await using b = await bench(nats, "nats-kv", failing);
  await b.submit({}, { id: "t" });
  const { store } = b.deps;
  let looks = 0;
  const getHead: typeof store.getHead = async (id) => {
    const head = await store.getHead(id);
    // Queued, with nothing in its journal: and by the time that is known it has run, and nobody knows what it did.
    if (++looks === 1) await b.drain();
    return head;
  };
  const operator = { ...b.deps, store: { ...store, getHead } };
  expect(await cancel(operator, "t")).toMatchObject({ state: "dispatched" });
  await until("it is in doubt", async () => {
    await b.drain();
    return (await b.task("t")).state === "in_doubt";
  });
});

test("one whose effect may have happened does not hold a strict lane until its next try: its person is asked now", async () => {
  const agent = agentOf(
    ({ effect, id }) => {
      if (id === "good") return "done";
      return effect("post", {
        run: () => {
          throw new Error("connection reset");
        },
      });
    },
    { order: "strict", backoff: { first: "10m", longest: "10m" } },
  );
  await using b = await bench(nats, "nats-kv", agent);
  for (const id of ["bad", "good"]) await b.submit({ id }, { id });
  await serve(b.deps, { name: AGENT, agent, mode: "once", stop: never });
  expect(await b.task("bad")).toMatchObject({ state: "dispatched", attempts: 1 });
  expect(await cancel(b.deps, "bad")).toMatchObject({ state: "dispatched", dispatches: 2 });
  expect(await b.drain()).toEqual({ completed: 1, "in-doubt": 1 });
  expect((await b.task("bad")).settled).toMatchObject([{ outcome: "rescheduled" }, { outcome: "in_doubt" }]);
});

test("a cancelled task of a strict lane frees it for those behind it", async () => {
  const done: string[] = [];
  const agent = agentOf(
    ({ id }) => {
      if (id === "bad") throw new Error("not now");
      done.push(id);
    },
    { order: "strict", backoff: { first: "10m", longest: "10m" } },
  );
  await using b = await bench(nats, "nats-kv", agent);
  for (const id of ["bad", "good"]) await b.submit({}, { id });
  await serve(b.deps, { name: AGENT, agent, mode: "once", stop: never });
  expect(await b.task("bad")).toMatchObject({ state: "dispatched", attempts: 1 });
  expect(await cancel(b.deps, "bad")).toMatchObject({ state: "cancelled" });
  expect(await b.drain()).toEqual({ completed: 1 });
  expect(done).toEqual(["good"]);
  expect(await b.deps.bus.state(b.queue)).toEqual({ pending: 0, inFlight: 0 });
});
