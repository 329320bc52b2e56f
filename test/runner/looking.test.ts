import { afterAll, beforeAll, expect, test } from "vitest";
import { startModel, text } from "../../infra/local/model.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { anthropic } from "../../shared/adapters/anthropic.ts";
import { signal } from "../../shared/dispatch/operate.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import type { Task, Waiting } from "../../shared/task/document.ts";
import { AGENT, agentOf, type Bench, bench } from "../support/bench.ts";
import { MODEL } from "../support/http/asking.ts";
import { testNats } from "../support/servers/stores.ts";
import { travel } from "../support/time/clocks.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const HOUR = 3_600_000;

/** An agent with a model, and a clock that the test moves. */
async function paid(run: Parameters<typeof agentOf>[0]) {
  const model = await startModel(() => text("x"));
  const b = await bench(nats, "nats-kv", agentOf(run, { attempts: 2, backoff: { first: "1ms" } }));
  Object.assign(b.deps, {
    model: anthropic({ apiKey: "test", baseUrl: model.url }),
    lanesOf: () => 1,
  });
  return Object.assign(b, {
    pass: travel(b.deps),
    [Symbol.asyncDispose]: async () => {
      await b.deps[Symbol.asyncDispose]();
      await model[Symbol.asyncDispose]();
    },
  });
}

const ask = { model: MODEL, prompt: "?", maxTokens: 100 };
const isIn = (b: Bench, state: Task["state"]) =>
  until(`it is ${state}`, async () => {
    await b.drain();
    return (await b.task("t")).state === state;
  });

test("a parent looks at its child ever more seldom, and what it paid before is saved by nobody", async () => {
  await using b = await paid(async ({ llm, submit }) => {
    await llm("ask", ask);
    return (await submit("child", {}, { key: "only" })).result();
  });
  await b.deps.bus.ensure({ ...b.queue, agent: "child" });
  await b.submit({}, { id: "t" });
  await isIn(b, "waiting");
  const began = b.deps.clock.now();
  const looks: number[] = [];
  // The dispatcher comes every minute, and finds nothing before its time.
  while (b.deps.clock.now() < began + 24 * HOUR) {
    const { dueAt = 0 } = (await b.task("t")) as Waiting;
    b.pass(dueAt - b.deps.clock.now() - 1_000);
    expect(await dispatchDue(b.deps, AGENT)).toBe(0);
    b.pass(61_000);
    expect(await dispatchDue(b.deps, AGENT)).toBe(1);
    await isIn(b, "waiting");
    looks.push(Math.round((b.deps.clock.now() - began) / 60_000));
  }
  expect(looks.length).toBeLessThan(12);
  expect(looks[0]).toBeLessThan(8);
  const gaps = looks.map((at, i) => at - (looks[i - 1] ?? 0));
  expect(Math.max(...gaps)).toBeLessThanOrEqual(6 * 60 + 3);
  expect(await b.task("t")).toMatchObject({
    dispatches: looks.length + 1,
    spent: { turns: 1 },
    saved: { turns: 0 },
  });
  // Its child's word is enough, however long it would still have waited.
  const child = ((await b.task("t")) as Waiting).waitingFor[0]?.slice("child:".length) as string;
  const { serve } = await import("../../shared/runner/serve.ts");
  const never = new AbortController().signal;
  await serve(b.deps, { name: "child", agent: agentOf(() => "grown"), mode: "drain", stop: never });
  expect((await b.task(child)).state).toBe("completed");
  await isIn(b, "completed");
  expect(await b.task("t")).toMatchObject({ result: "grown", saved: { turns: 0 } });
});

test("what a failure and a hand-off would have cost again is saved, a wait in between is not", async () => {
  const stop = new AbortController();
  await using b = await paid(async ({ llm, attempt, waitFor, signal: aborted }) => {
    await llm("ask", ask);
    if (attempt === 1) throw new Error("again");
    await waitFor("go");
    if (stop.signal.aborted) return "done";
    stop.abort(new Error("told to stop"));
    aborted.throwIfAborted();
  });
  await b.submit({}, { id: "t" });
  await isIn(b, "waiting");
  expect(await b.task("t")).toMatchObject({ spent: { turns: 1 }, saved: { turns: 1 } });
  await signal(b.deps, "t", "go", null);
  expect(await b.drain(undefined, stop.signal)).toEqual({ "handed-off": 1 });
  expect(await b.task("t")).toMatchObject({ saved: { turns: 1 } });
  await isIn(b, "completed");
  expect(await b.task("t")).toMatchObject({ executions: 4, spent: { turns: 1 }, saved: { turns: 2 } });
});
