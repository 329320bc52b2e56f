import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import { serve } from "../../shared/runner/serve.ts";
import { AGENT, agentOf, bench } from "../support/bench.ts";
import { away } from "../support/faults/disturb.ts";
import { testNats } from "../support/servers/stores.ts";
import { allCompleted, until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** None of its requests is answered while `isAway` says so. */
function cutOff(store: TaskStore, isAway: () => boolean): TaskStore {
  return new Proxy(store, {
    get: (target, name) => {
      const value = Reflect.get(target, name);
      if (typeof value !== "function" || name === "close") return value;
      return (...args: unknown[]) => (isAway() ? Promise.reject(away()) : value.apply(target, args));
    },
  });
}

test("a runner that can't reach its store lets go of the message after a lease, and the lane belongs to those who can", async () => {
  const agent = agentOf(() => "done");
  await using b = await bench(nats, "nats-kv", agent, { ackWait: 1_500 });
  let isAway = true;
  const sick = { ...b.deps, store: cutOff(b.deps.store, () => isAway), runner: "sick" };
  const stop = new AbortController();
  const ids = ["a", "b", "c"];
  for (const id of ids) await b.submit({}, { id });
  const ill = serve(sick, { name: AGENT, agent, mode: "forever", stop: stop.signal });
  await until("it has a message", async () => (await b.deps.bus.state(b.queue)).inFlight === 1);
  const well = serve(b.deps, { name: AGENT, agent, mode: "forever", stop: stop.signal });
  await allCompleted(b.deps.store, ids);
  for (const id of ids) expect((await b.task(id)).history.at(-1)).not.toMatchObject({ by: "sick" });
  const said = (event: string) => b.deps.logged.filter((line) => line.event === event);
  expect(said("task.handled").find(({ fields }) => fields.as === "store-away")).toBeDefined();
  expect(said("store.away")[0]?.fields).toMatchObject({ reason: "no answer", seconds: expect.any(Number) });
  // Back again, it works like any other.
  isAway = false;
  await until("it says that the store is back", async () => said("store.back").length === 1);
  stop.abort(new Error("told to stop"));
  await Promise.all([ill, well]);
});

test("an invocation whose store goes away ends with the store's error, and its message is there for the next", async () => {
  const agent = agentOf(() => "done");
  await using b = await bench(nats, "nats-kv", agent, { ackWait: 1_500 });
  await b.submit({}, { id: "t" });
  // The first claim needs no read: its write is what fails.
  const store = cutOff(b.deps.store, () => true);
  const never = new AbortController().signal;
  await expect(
    serve({ ...b.deps, store }, { name: AGENT, agent, mode: "idle", stop: never }),
  ).rejects.toMatchObject({
    code: "store_unavailable",
  });
  expect(await b.drain()).toEqual({ completed: 1 });
});
