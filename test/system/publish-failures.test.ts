import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Config, StoreKind } from "../../functions/wiring/config.ts";
import { type CuttingProxy, cuttingProxy } from "../../infra/drills/faults/proxy.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { defineAgent } from "../../shared/agent.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { readCounts } from "../../shared/meter/meter.ts";
import type { Deps } from "../../shared/ports/deps.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import { ORPHAN_AFTER } from "../../shared/task/due.ts";
import { streamName } from "../../shared/task/names.ts";
import { AGENT, type Bench, bench } from "../support/bench.ts";
import { emulatorHost, hasEmulator, testNats, wired } from "../support/servers/stores.ts";
import { later } from "../support/time/clocks.ts";
import { patiently } from "../support/time/until.ts";

/** One dispatch is three steps, and each of them can fail: the write before, the publish, the write that takes it back. */

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** Of those who meet the failure: each of theirs that is not answered takes as long. */
const requestTimeout = 2_000;
/** A queue that one message fills. */
const small = { inputLimit: 1_000, queueBytes: 2_001 };
const large = { text: "x".repeat(900) };
const wanted = { agent: AGENT, lanes: 1, id: "t", input: { text: "y".repeat(900) } };

function counting() {
  const runs: string[] = [];
  return { runs, agent: defineAgent({ run: ({ id }) => void runs.push(id) }) };
}

/** The proxy is in front of the server that holds the documents. */
function storeProxy(kind: StoreKind): Promise<CuttingProxy> {
  return cuttingProxy(kind === "nats-kv" ? nats.url : emulatorHost);
}

/** The bench's twin, whose documents are behind the proxy. */
async function behind(b: Bench, proxy: CuttingProxy, kind: StoreKind) {
  const config = { ...b.world.config, settings: { ...b.world.config.settings, requestTimeout } };
  const other: Config =
    kind === "nats-kv" ? { ...config, nats: { url: proxy.url } } : { ...config, emulatorHost: proxy.host };
  const deps = await wired(other);
  // Its first request is the slow one.
  await patiently(() => deps.store.get("warm-up"));
  return deps;
}

/** The same, for what is said to the queue. */
const behindBus = ({ world: { config } }: Bench, proxy: CuttingProxy) =>
  wired({ ...config, settings: { ...config.settings, requestTimeout }, nats: { url: proxy.url } });

/** The patience of 15 s is over after 3. */
const hasty = <D extends Deps>(deps: D): D => ({
  ...deps,
  clock: { ...deps.clock, monotonic: () => performance.now() * 5 },
});

/** One of several who found room in the queue at the same moment. */
const unaware = <D extends Deps>(deps: D): D => ({
  ...deps,
  bus: { ...deps.bus, usage: async () => undefined },
});

const LATER = ORPHAN_AFTER + 1_000;

/** The store, with an account of requests that failed which no counter has a part in. */
function watched(store: TaskStore, onFailure: (failures: number) => void = () => {}) {
  const account = { failures: 0 };
  const watch =
    <A extends unknown[], R>(ask: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      try {
        return await ask(...args);
      } catch (error) {
        onFailure(++account.failures);
        throw error;
      }
    };
  const { get, create, replace } = store;
  return { account, store: { ...store, get: watch(get), create: watch(create), replace: watch(replace) } };
}

/** What was counted of dispatching, all of it, whoever counted. */
async function counted(b: Bench, ...others: Deps[]): Promise<Record<string, number>> {
  for (const deps of [b.deps, ...others]) await deps.meter.flush();
  const all = Object.entries(await readCounts(b.deps.store));
  return Object.fromEntries(all.filter(([name]) => /publish_|rollback_|requeued/.test(name)));
}
const retries = (phase: string) => `pawl_publish_retries_total{agent="tested",phase="${phase}"}`;
const ROLLBACKS = 'pawl_publish_rollbacks_total{agent="tested",phase="publish"}';
const FAILED_ROLLBACKS = 'pawl_rollback_failures_total{agent="tested",phase="rollback_write"}';
const REQUEUED = 'pawl_requeued_total{agent="tested"}';

/** How many messages the stream ever took. */
const taken = async (b: Bench) => (await b.deps.bus.inspect(b.queue)).lastSeq;

describe.each([
  { kind: "firestore-rest", here: hasEmulator },
  { kind: "nats-kv", here: true },
] as const)("$kind", ({ kind, here }) => {
  describe.skipIf(!here)("the write before the publish", () => {
    test("is tried again while the store is away, each time counted, and then one message is sent", async () => {
      const { runs, agent } = counting();
      await using proxy = await storeProxy(kind);
      await using b = await bench(nats, kind, agent);
      await using through = await behind(b, proxy, kind);
      // Back after the second failure; whatever failed before or after that is in the account.
      const { store, account } = watched(through.store, (failures) => failures === 2 && proxy.cut(false));
      proxy.cut(true);
      expect(await submit({ ...through, store }, wanted)).toMatchObject({ kind: "accepted" });
      expect(account.failures).toBeGreaterThanOrEqual(2);
      expect(await taken(b)).toBe(1);
      expect(await b.drain()).toEqual({ completed: 1 });
      expect(await counted(b, through)).toEqual({ [retries("dispatched_write")]: account.failures });
      expect(runs).toEqual(["t"]);
      expect(await b.task("t")).toMatchObject({ dispatches: 1, attempts: 0, executions: 1 });
    });

    test("fails for good: the submit says so, nothing is published, and a second submit is the first", async () => {
      const { runs, agent } = counting();
      await using proxy = await storeProxy(kind);
      await using b = await bench(nats, kind, agent);
      await using through = await behind(b, proxy, kind);
      const { store, account } = watched(through.store);
      proxy.cut(true);
      await expect(submit(hasty({ ...through, store }), wanted)).rejects.toMatchObject({
        code: "store_unavailable",
      });
      expect(await taken(b)).toBe(0);
      expect(await b.deps.store.get("t")).toBeUndefined();
      proxy.cut(false);
      expect(await submit(b.deps, wanted)).toMatchObject({ kind: "accepted" });
      expect(await b.drain()).toEqual({ completed: 1 });
      expect(runs).toEqual(["t"]);
      await patiently(() => through.store.get("t"));
      expect(await counted(b, through)).toEqual({ [retries("dispatched_write")]: account.failures });
      expect(account.failures).toBeGreaterThanOrEqual(1);
    });
  });

  describe.skipIf(!here)("the publish", () => {
    test("is refused by a full queue, twice: scheduled again, no attempt spent, and run once in the end", async () => {
      const { runs, agent } = counting();
      await using b = await bench(nats, kind, agent, small);
      await submit(unaware(b.deps), { ...wanted, input: large, id: "first" });
      await expect(submit(unaware(b.deps), wanted)).rejects.toMatchObject({ code: "queue_full" });
      expect(await b.task("t")).toMatchObject({ state: "scheduled", dispatches: 1, attempts: 0 });
      expect(await dispatchDue(b.deps, AGENT)).toBe(0);
      expect(await b.task("t")).toMatchObject({ state: "scheduled", dispatches: 2, attempts: 0 });
      expect(await counted(b)).toEqual({ [ROLLBACKS]: 2 });
      expect(await b.drain()).toEqual({ completed: 1 });

      expect(await dispatchDue(later(b.deps, LATER), AGENT)).toBe(1);
      expect(await b.drain()).toEqual({ completed: 1 });
      expect(runs).toEqual(["first", "t"]);
      expect(await b.task("t")).toMatchObject({
        state: "completed",
        dispatches: 3,
        attempts: 0,
        executions: 1,
      });
      expect(await taken(b)).toBe(2);
      expect(await counted(b)).toEqual({ [ROLLBACKS]: 2 });
    });

    test("finds no stream: tried for as long as a caller waits, then scheduled again, and run once in the end", async () => {
      const { runs, agent } = counting();
      await using b = await bench(nats, kind, agent);
      await (await jetstreamManager(b.deps.nc)).streams.delete(streamName(b.queue));
      await expect(submit(hasty(b.deps), wanted)).rejects.toMatchObject({ code: "queue_missing" });
      expect(await b.task("t")).toMatchObject({ state: "scheduled", dispatches: 1, attempts: 0 });
      // A sweep tries once.
      const tries = b.deps.logged.filter(({ event }) => event === "publish.retry").length;
      expect(tries).toBeGreaterThanOrEqual(2);
      expect(await dispatchDue(b.deps, AGENT)).toBe(0);
      expect(await b.task("t")).toMatchObject({ state: "scheduled", dispatches: 2, attempts: 0 });
      const expected = { [retries("publish")]: tries, [ROLLBACKS]: 2 };
      expect(await counted(b)).toEqual(expected);

      await b.deps.bus.ensure(b.queue);
      expect(await dispatchDue(later(b.deps, LATER), AGENT)).toBe(1);
      expect(await b.drain()).toEqual({ completed: 1 });
      expect(runs).toEqual(["t"]);
      expect(await b.task("t")).toMatchObject({ dispatches: 3, attempts: 0, executions: 1 });
      expect(await counted(b)).toEqual(expected);
    });

    test("is taken, and the answer is lost: sent again under the same Msg-Id, and one message is there", async () => {
      const { runs, agent } = counting();
      await using proxy = await cuttingProxy(nats.url);
      await using b = await bench(nats, kind, agent);
      await using through = await behindBus(b, proxy);
      const msgIds: string[] = [];
      const results: unknown[] = [];
      const publish: Deps["bus"]["publish"] = async (queue, message) => {
        msgIds.push(message.msgId);
        const isFirst = msgIds.length === 1;
        if (isFirst) proxy.swallowReplies(true);
        try {
          const result = await through.bus.publish(queue, message);
          results.push(result.kind);
          return result;
        } catch (error) {
          results.push((error as { code: string }).code);
          throw error;
        } finally {
          if (isFirst) proxy.swallowReplies(false);
        }
      };
      const deaf = { ...through, bus: { ...through.bus, publish } };
      expect(await submit(deaf, wanted)).toMatchObject({ kind: "accepted", state: "dispatched" });
      expect(msgIds).toEqual(["submit:t", "submit:t"]);
      expect(results).toEqual(["bus_unavailable", "duplicate"]);
      expect(await taken(b)).toBe(1);
      expect(await b.deps.bus.state(b.queue)).toEqual({ pending: 1, inFlight: 0 });
      expect(await b.drain()).toEqual({ completed: 1 });
      expect(runs).toEqual(["t"]);
      expect(await b.task("t")).toMatchObject({ dispatches: 1, attempts: 0, executions: 1 });
      expect(await counted(b, through)).toEqual({ [retries("publish")]: 1 });
    });
  });

  test.skipIf(!here)(
    "the write that takes it back fails: left dispatched without a message, which a sweep repairs",
    async () => {
      const { runs, agent } = counting();
      await using proxy = await storeProxy(kind);
      await using b = await bench(nats, kind, agent, small);
      await using through = await behind(b, proxy, kind);
      await submit(unaware(b.deps), { ...wanted, input: large, id: "first" });
      const { store, account } = watched(through.store);
      const publish: Deps["bus"]["publish"] = (queue, message) =>
        through.bus.publish(queue, message).finally(() => proxy.cut(true));
      const cut = unaware(hasty({ ...through, store, bus: { ...through.bus, publish } }));
      await expect(submit(cut, wanted)).rejects.toMatchObject({ code: "queue_full" });
      expect(through.logged.map(({ event }) => event)).toContain("rollback.failed");
      expect(await b.task("t")).toMatchObject({ state: "dispatched", dispatches: 1, attempts: 0 });
      expect(await b.deps.bus.lookup(b.queue, "t")).toBeUndefined();
      expect(account.failures).toBeGreaterThanOrEqual(1);
      proxy.cut(false);

      expect(await b.drain()).toEqual({ completed: 1 });
      expect(await dispatchDue(b.deps, AGENT)).toBe(0);
      expect(await dispatchDue(later(b.deps, LATER), AGENT)).toBe(1);
      expect(await b.drain()).toEqual({ completed: 1 });
      expect(runs).toEqual(["first", "t"]);
      expect(await b.task("t")).toMatchObject({
        state: "completed",
        dispatches: 1,
        attempts: 0,
        executions: 1,
      });
      await patiently(() => through.store.get("t"));
      expect(await counted(b, through)).toEqual({
        [retries("rollback_write")]: account.failures,
        [FAILED_ROLLBACKS]: 1,
        [REQUEUED]: 1,
      });
    },
  );
});

test("a store that refuses the write (its user may not) is not asked again, and nothing is published", async () => {
  const config = `no_auth_user: all
authorization { users: [
    { user: all, password: secret },
    { user: some, password: secret, permissions: { publish: { deny: ["$KV.>"] } } }
  ] }`;
  await using own = await testNats({ config });
  const { runs, agent } = counting();
  await using b = await bench(own, "nats-kv", agent);
  await using refused = await wired({
    ...b.world.config,
    nats: { url: own.url, user: "some", password: "secret" },
  });
  const retried: unknown[] = [];
  const meter = { ...refused.meter, count: (...args: unknown[]) => void retried.push(args) };
  await expect(submit({ ...refused, meter }, wanted)).rejects.toMatchObject({ code: "store_refused" });
  expect(retried).toEqual([]);
  expect(await taken(b)).toBe(0);
  expect(await submit(b.deps, wanted)).toMatchObject({ kind: "accepted" });
  expect(await b.drain()).toEqual({ completed: 1 });
  expect(runs).toEqual(["t"]);
});
