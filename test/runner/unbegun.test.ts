import { Kvm } from "@nats-io/kv";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { cancel } from "../../shared/dispatch/operate.ts";
import { PawlError } from "../../shared/errors/errors.ts";
import type { Head } from "../../shared/journal/entries.ts";
import type { Bus, Delivery } from "../../shared/ports/bus.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import { serve } from "../../shared/runner/serve.ts";
import { AGENT, agentOf, type Bench, bench } from "../support/bench.ts";
import { dieAfter } from "../support/faults/death.ts";
import { oneOfEach, testNats, wired } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const never = new AbortController().signal;
const posting = (posts: string[], by: string) =>
  agentOf(({ effect }) => effect("post", { run: (key) => void posts.push(`${by} ${key}`) }));

/**
 * A holder that is cut off while it stores an effect's intent, and gets its answer only when the test says so: long
 * after its lease. It has a connection of its own, and answers nobody.
 */
async function slowHolder(b: Bench, posts: string[], isListed = true) {
  const own = await wired(b.world.config);
  const written = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<void>();
  let isFirst = true;
  let isCutOff = false;
  const putHead: TaskStore["putHead"] = async (head: Head, seen) => {
    if (!isFirst) return own.store.putHead(head, seen);
    isFirst = false;
    isCutOff = true;
    const result = isListed ? await own.store.putHead(head, seen) : ({ kind: "refused" } as const);
    written.resolve();
    await answer.promise;
    return result;
  };
  const pull: Bus["pull"] = (queue, waitMs) => {
    const whole = own.bus.pull(queue, waitMs);
    const beats = (delivery: Delivery): Delivery => ({
      ...delivery,
      working: () =>
        isCutOff ? Promise.reject(new PawlError("bus_unavailable", "cut off")) : delivery.working(),
    });
    return { ...whole, delivery: whole.delivery.then((delivery) => delivery && beats(delivery)) };
  };
  const bus = { ...own.bus, pull, answerFor: () => () => {} };
  const deps = { ...own, runner: "slow", bus, store: { ...own.store, putHead } };
  const served = serve(deps, { name: AGENT, agent: posting(posts, "slow"), mode: "once", stop: never });
  await written.promise;
  return {
    lost: () =>
      until("its lease is lost", async () => own.logged.some(({ event }) => event === "lease.lost")),
    /** Its answer comes: it finds its lease lost, and says what it knows. */
    wake: async () => {
      answer.resolve();
      expect(await served).toEqual({ abandoned: 1 });
    },
    [Symbol.asyncDispose]: () => own[Symbol.asyncDispose](),
  };
}

describe.each(oneOfEach)("$kind", ({ kind, here }) => {
  test.skipIf(!here)(
    "an effect that a holder had announced and not begun runs without a person",
    async () => {
      const posts: string[] = [];
      await using b = await bench(nats, kind, posting(posts, "next"), { ackWait: 4_000 });
      await b.submit({}, { id: "t" });
      await using slow = await slowHolder(b, posts);
      const next = serve(b.deps, { name: AGENT, agent: posting(posts, "next"), mode: "once", stop: never });
      await until("its successor waits for its turn", async () => (await b.task("t")).fence === 2);
      await slow.wake();
      expect(await next).toEqual({ completed: 1 });
      expect(posts).toEqual([expect.stringMatching(/^next /)]);
    },
  );
});

test("one that is in doubt already goes on when the holder says so later", async () => {
  const posts: string[] = [];
  await using b = await bench(nats, "nats-kv", posting(posts, "next"), { ackWait: 1_500 });
  await b.submit({}, { id: "t" });
  await using slow = await slowHolder(b, posts);
  await until("it is in doubt", async () => {
    await b.drain();
    return (await b.task("t")).state === "in_doubt";
  });
  await slow.wake();
  await until("it is completed", async () => {
    await b.drain();
    return (await b.task("t")).state === "completed";
  });
  expect(posts).toEqual([expect.stringMatching(/^next /)]);
});

test("cancelled, it is cancelled, and nobody is asked", async () => {
  const posts: string[] = [];
  await using b = await bench(nats, "nats-kv", posting(posts, "next"), { ackWait: 4_000 });
  await b.submit({}, { id: "t" });
  await using slow = await slowHolder(b, posts);
  const next = serve(b.deps, { name: AGENT, agent: posting(posts, "next"), mode: "once", stop: never });
  await until("its successor waits for its turn", async () => (await b.task("t")).fence === 2);
  await cancel(b.deps, "t");
  await slow.wake();
  expect(await next).toEqual({ cancelled: 1 });
  expect(posts).toEqual([]);
});

test("its word is of its own task only: a later one of the same id, which did begin, is in doubt", async () => {
  const posts: string[] = [];
  await using b = await bench(nats, "nats-kv", posting(posts, "next"), {
    ackWait: 1_500,
    duplicateWindow: 100,
  });
  await b.submit({}, { id: "t" });
  await using slow = await slowHolder(b, posts);
  await slow.lost();
  await slow.wake();
  // As retention leaves it: the document and its journal go, and the id is used again.
  const kv = await new Kvm(b.deps.nc).open(`${b.deps.settings.namespace}-tasks`);
  for (const key of ["task.t", "journal.t"]) await kv.purge(key);
  const [message] = await b.deps.bus.survivors(b.queue, 1, 1);
  if (message) await b.deps.bus.remove(b.queue, message.seq);
  await b.submit({}, { id: "t" });
  await dieAfter(b, posting(posts, "dies"), (head) => head.count >= 1);
  await until("it is in doubt", async () => {
    await b.drain();
    return (await b.task("t")).state === "in_doubt";
  });
});

test("its word is of its own try only: that of another holder, which did begin, stays in doubt", async () => {
  const posts: string[] = [];
  await using b = await bench(nats, "nats-kv", posting(posts, "next"), { ackWait: 1_500 });
  await b.submit({}, { id: "t" });
  // Its intent never reached the journal, so its successor's try is the first one too.
  await using slow = await slowHolder(b, posts, false);
  await until("its message comes again", async () => (await b.deps.bus.state(b.queue)).inFlight === 1);
  await dieAfter(b, posting(posts, "dies"), (head) => head.fence >= 2 && head.count >= 1);
  await slow.wake();
  await until("it is in doubt", async () => {
    await b.drain();
    return (await b.task("t")).state === "in_doubt";
  });
  expect(await b.task("t")).toMatchObject({ effect: "post#1", tries: 1 });
});
