import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { signal } from "../../shared/dispatch/operate.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { AGENT, agentOf, bench } from "../support/bench.ts";
import { ahead } from "../support/reconciling.ts";
import { testNats } from "../support/servers/stores.ts";

// What a handler is given is its own: what it changes in it changes no document, and no journal.

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test("a handler that changes a step's value changes nothing that is journaled", async () => {
  const seen: string[] = [];
  const pushing = agentOf(
    async ({ step, effect }) => {
      const list = await step("list", () => [1]);
      const receipt = await effect("sent", { run: () => ({ ids: [1] }) });
      seen.push(JSON.stringify([list, receipt]));
      list.push(2);
      receipt.ids.push(2);
      await step("next", () => 1);
      throw new Error("again");
    },
    { attempts: 2 },
  );
  await using b = await bench(nats, "nats-kv", pushing);
  await b.submit({}, { id: "t" });
  await b.drain();
  ahead(b, 600_000);
  await dispatchDue(b.deps, AGENT);
  await b.drain();
  expect(seen).toEqual(['[[1],{"ids":[1]}]', '[[1],{"ids":[1]}]']);
});

test("a handler that changes its input has the same one the next time", async () => {
  const seen: string[] = [];
  const pushing = agentOf(
    ({ input }) => {
      seen.push(JSON.stringify(input));
      (input as { list: number[] }).list.push(1);
      throw new Error("again");
    },
    { attempts: 2 },
  );
  await using b = await bench(nats, "nats-kv", pushing);
  await b.submit({ list: [] }, { id: "t" });
  await b.drain();
  ahead(b, 600_000);
  await dispatchDue(b.deps, AGENT);
  await b.drain();
  expect(seen).toEqual(['{"list":[]}', '{"list":[]}']);
  expect(await b.task("t")).toMatchObject({ state: "failed", attempts: 2, input: { list: [] } });
});

test("a handler that changes an answer does not change the signal", async () => {
  const pushing = agentOf(async ({ waitFor, step }) => {
    const answer = (await waitFor("list")) as number[];
    answer.push(2);
    await step("next", () => 1);
  });
  await using b = await bench(nats, "nats-kv", pushing);
  await b.submit({}, { id: "t" });
  await b.drain();
  await signal(b.deps, "t", "list", [1]);
  await b.drain();
  expect(await b.task("t")).toMatchObject({ state: "completed", signals: [{ value: [1] }] });
});

test("a child runs whose input has a property that is undefined", async () => {
  const seen: unknown[] = [];
  const parent = agentOf(async ({ submit, input }) => {
    if ("child" in (input as object)) seen.push(input);
    else await submit(AGENT, { child: true, none: undefined } as never, { key: "k" });
  });
  await using b = await bench(nats, "nats-kv", parent);
  Object.assign(b.deps, { lanesOf: () => 1 });
  await b.submit({}, { id: "t" });
  await b.drain();
  expect(seen).toEqual([{ child: true }]);
});
