import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { type Effect, Fatal, Retry } from "../../shared/agent.ts";
import { PawlError } from "../../shared/errors/errors.ts";
import { isFinal } from "../../shared/task/table.ts";
import { agentOf, bench } from "../support/bench.ts";
import { disturbed } from "../support/faults/disturb.ts";
import { oneOfEach, testNats } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** A receiver with a memory: what a world outside would have seen. */
function receiver() {
  const posts = new Map<string, number>();
  const keys: string[] = [];
  const post = (key: string) => {
    keys.push(key);
    posts.set(key, (posts.get(key) ?? 0) + 1);
    return { post: keys.length };
  };
  return { posts, keys, post, find: (key: string) => (posts.has(key) ? { post: 1 } : undefined) };
}

/** Its holder dies at the n-th write of the journal, as far as anyone can tell; the next one takes over. */
async function crashing(n: number, effect: Effect<unknown>, limits = {}) {
  const agent = agentOf(({ effect: call }) => call("post", effect), limits);
  const b = await bench(nats, "nats-kv", agent, { ackWait: 3_000 });
  const { store } = b.deps;
  const dying = disturbed(store, n, async () => {
    throw new PawlError("lease_lost", "dead");
  });
  Object.assign(b.deps, { store: dying });
  await b.submit({}, { id: "t" });
  await until("t is over or in doubt", async () => {
    await b.drain();
    const task = await b.task("t");
    return isFinal(task) || task.state === "in_doubt";
  });
  return b;
}
const BEFORE_RECEIPT = 2;

describe.each(oneOfEach)("$kind", ({ kind, here }) => {
  test.skipIf(!here)("an effect happens once, under one key, however often its handler starts", async () => {
    const world = receiver();
    const agent = agentOf(
      async ({ effect, attempt }) => {
        const receipt = await effect("post", { run: world.post });
        if (attempt < 3) throw new Error("later");
        return receipt;
      },
      { attempts: 3 },
    );
    await using b = await bench(nats, kind, agent);
    await b.submit({}, { id: "t" });
    await until("t is completed", async () => {
      await b.drain();
      return (await b.task("t")).state === "completed";
    });
    expect(world.keys).toEqual([expect.stringMatching(/^pawl-[0-9a-f]{40}$/)]);
    expect(await b.task("t")).toMatchObject({ result: { post: 1 }, attempts: 2, journaled: 2 });
  });
});

test.concurrent("dead before the intent: nothing was begun, and the next holder begins", async () => {
  const world = receiver();
  await using b = await crashing(1, { run: world.post });
  expect(world.keys).toHaveLength(1);
  expect(await b.task("t")).toMatchObject({ state: "completed", fence: 2 });
});

test.concurrent("dead before the receipt, without verify: in doubt, and nothing is tried again", async () => {
  const world = receiver();
  await using b = await crashing(BEFORE_RECEIPT, { run: world.post });
  expect(world.keys).toHaveLength(1);
  expect(await b.task("t")).toMatchObject({ state: "in_doubt", effect: "post#1", tries: 1 });
  expect((await b.task("t")).settled).toMatchObject([{ seq: 1, outcome: "in_doubt" }]);
  expect(await b.deps.bus.state(b.queue)).toEqual({ pending: 0, inFlight: 0 });
});

test.concurrent("dead before the receipt, verify finds it: its answer is the receipt", async () => {
  const world = receiver();
  await using b = await crashing(BEFORE_RECEIPT, { run: world.post, verify: world.find });
  expect(world.keys).toHaveLength(1);
  expect(await b.task("t")).toMatchObject({ state: "completed", result: { post: 1 } });
});

test.concurrent("dead before the receipt, verify does not find it: the request may still arrive, so in doubt", async () => {
  const world = receiver();
  await using b = await crashing(BEFORE_RECEIPT, { run: world.post, verify: () => undefined });
  expect(world.keys).toHaveLength(1);
  expect(await b.task("t")).toMatchObject({ state: "in_doubt" });
});

test.concurrent("dead before the receipt, and the receiver honours the key: asked again under the same one", async () => {
  const world = receiver();
  await using b = await crashing(BEFORE_RECEIPT, { run: world.post, honoursKey: true });
  expect(world.keys).toHaveLength(2);
  expect(new Set(world.keys).size).toBe(1);
  expect(await b.task("t")).toMatchObject({ state: "completed", journaled: 3 });
});

test("a handler can't catch its way out of doubt", async () => {
  const world = receiver();
  const agent = agentOf(async ({ effect, attempt }) => {
    try {
      return await effect("post", {
        run: (key) => {
          world.post(key);
          throw new Error("connection reset");
        },
      });
    } catch (error) {
      if (attempt > 1) return "caught";
      throw error;
    }
  });
  await using b = await bench(nats, "nats-kv", agent);
  await b.submit({}, { id: "t" });
  await until("t is in doubt", async () => {
    await b.drain();
    return (await b.task("t")).state === "in_doubt";
  });
  expect(world.keys).toHaveLength(1);
});

test("what is in doubt waits for the calls beside it, and their results are kept", async () => {
  let steps = 0;
  const agent = agentOf(async ({ effect, step }) => {
    const slow = step("slow", async () => {
      await new Promise((resolve) => setTimeout(resolve, 300));
      return ++steps;
    });
    const post = effect("post", {
      run: async () => {
        throw new Error("reset");
      },
    });
    await Promise.all([slow, post]);
  });
  await using b = await bench(nats, "nats-kv", agent);
  await b.submit({}, { id: "t" });
  await until("t is in doubt", async () => {
    await b.drain();
    return (await b.task("t")).state === "in_doubt";
  });
  expect(steps).toBe(1);
  // The intent, its end, and the step that went on beside it.
  expect((await b.task("t")).journaled).toBe(3);
});

test.each([
  ["Retry", () => new Retry("busy", 10), 2],
  ["any other, verified as not there", () => new Error("reset"), 2],
] as const)("thrown by the effect: %s: it is tried again", async (_, thrown, times) => {
  const tries: string[] = [];
  const agent = agentOf(({ effect }) =>
    effect("post", {
      run: (key) => {
        tries.push(key);
        if (tries.length === 1) throw thrown();
        return "posted";
      },
      verify: () => undefined,
    }),
  );
  await using b = await bench(nats, "nats-kv", agent);
  await b.submit({}, { id: "t" });
  await until("t is completed", async () => {
    await b.drain();
    return (await b.task("t")).state === "completed";
  });
  expect(tries).toHaveLength(times);
  expect(new Set(tries).size).toBe(1);
});

test("Fatal thrown by the effect: nothing happened, and the task fails", async () => {
  const agent = agentOf(({ effect }) =>
    effect("post", {
      run: () => {
        throw new Fatal("refused");
      },
    }),
  );
  await using b = await bench(nats, "nats-kv", agent);
  await b.submit({}, { id: "t" });
  await b.drain();
  expect(await b.task("t")).toMatchObject({ state: "failed", error: { code: "fatal" } });
  const head = (await b.deps.store.getHead("t"))?.head;
  expect(head?.recent.map((entry) => entry.kind)).toEqual(["intent", "undone"]);
});
