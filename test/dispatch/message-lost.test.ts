import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { defineAgent } from "../../shared/agent.ts";
import { dispatchDue, rescue } from "../../shared/dispatch/sweep.ts";
import { systemClock } from "../../shared/ports/clock.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import { serve } from "../../shared/runner/serve.ts";
import { streamName, subjectPrefix } from "../../shared/task/names.ts";
import { AGENT, type Bench, bench, untilAborted } from "../support/bench.ts";
import { testNats, wired } from "../support/servers/stores.ts";
import { later } from "../support/time/clocks.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

async function removeMessage(b: Bench, id: string): Promise<void> {
  const found = await b.deps.bus.lookup(b.queue, id);
  const jsm = await jetstreamManager(b.deps.nc);
  await jsm.streams.deleteMessage(streamName(b.queue), found?.seq ?? 0);
}

test("another message in place of a running task's own: its holder loses it, and it goes on at once", async () => {
  let starts = 0;
  const agent = defineAgent({
    // The first one is in the way for as long as it may.
    run: ({ signal }) => (++starts === 1 ? untilAborted(signal) : "by the second"),
  });
  await using b = await bench(nats, "nats-kv", agent, { ackWait: 3_000 });
  await using other = await wired(b.world.config);
  const stop = new AbortController();
  const runners = [b.deps, other].map((deps) =>
    serve(deps, { name: AGENT, agent, mode: "forever", stop: stop.signal }),
  );
  await b.submit({ n: 1 }, { id: "t" });
  await until("it runs", async () => starts > 0);
  await removeMessage(b, "t");
  await jetstream(b.deps.nc).publish(`${subjectPrefix(b.queue)}t`, '{"v":1,"input":{"n":1}}');
  // A sweep would find it after a minute or two.
  await until("it is completed", async () => (await b.task("t")).state === "completed");
  stop.abort(new Error("told to stop"));
  await Promise.all(runners);
  const task = await b.task("t");
  expect(task).toMatchObject({ result: "by the second", executions: 2 });
  const events = task.history.map(({ event }) => event);
  expect(events).toEqual(["submit", "claim", "surplus", "requeue", "claim", "start", "complete"]);
});

test("a task whose message is gone stays with a holder that is well", async () => {
  const started = Promise.withResolvers<void>();
  const done = Promise.withResolvers<string>();
  const agent = defineAgent({
    run: () => {
      started.resolve();
      return done.promise;
    },
  });
  await using b = await bench(nats, "nats-kv", agent);
  await b.submit({}, { id: "t" });
  const drained = b.drain();
  await started.promise;
  await removeMessage(b, "t");
  await rescue(b.deps, "t");
  done.resolve("done");
  expect(await drained).toEqual({ completed: 1 });
  expect(await b.task("t")).toMatchObject({ state: "completed", fence: 1, executions: 1 });
});

test("a purge: whoever finds its lane empty dispatches what lost its message, under the next Msg-Id", async () => {
  const runs: string[] = [];
  // No sweep looks for orphans that are younger.
  const agent = defineAgent({ limits: { dispatchTimeout: "1h" }, run: ({ id }) => void runs.push(id) });
  await using b = await bench(nats, "nats-kv", agent);
  const ids = Array.from({ length: 12 }, (_, i) => `t${i}`);
  for (const id of ids) await b.submit({}, { id });
  await (await jetstreamManager(b.deps.nc)).streams.purge(streamName(b.queue));
  expect(await dispatchDue(b.deps, AGENT, undefined, agent.limits)).toBe(0);

  // A hundred times as fast, with nothing to pull.
  const begun = Date.now();
  let sweeps = 0;
  const passed = () => (Date.now() - begun) * 100;
  const fast = later(b.deps, () => begun + passed() - Date.now());
  const deps: Deps = {
    ...fast,
    clock: {
      ...fast.clock,
      monotonic: passed,
      sleep: (ms, signal) => systemClock.sleep(ms / 100, signal),
    },
    store: {
      ...fast.store,
      due: (...args) => {
        if (args[1] === "scheduled") sweeps++;
        return b.deps.store.due(...args);
      },
    },
    bus: {
      ...fast.bus,
      pull: () => ({ delivery: systemClock.sleep(50).then(() => undefined), cancel: async () => {} }),
    },
  };
  const stop = new AbortController();
  const served = serve(deps, { name: AGENT, agent, mode: "forever", stop: stop.signal });
  await until("all have a message", async () => (await b.deps.bus.state(b.queue)).pending === ids.length);
  stop.abort(new Error("told to stop"));
  await served;
  // At the start, every minute, and once because the lane was empty: not at each pull that brings nothing.
  expect(sweeps).toBeLessThanOrEqual(2 + passed() / 60_000);
  expect(await b.drain()).toEqual({ completed: ids.length });
  expect([...runs].sort()).toEqual([...ids].sort());
  expect(await b.task("t0")).toMatchObject({ dispatches: 2 });
});
