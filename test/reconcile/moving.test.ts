import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { AGENT, agentOf, type Bench, bench } from "../support/bench.ts";
import { ahead, namesOf, patched, reconciled } from "../support/reconciling.ts";
import { testNats } from "../support/servers/stores.ts";

// A document is read first, and what is beside it later: in between it may have gone on.

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const sleeper = agentOf(async ({ step, sleep }) => {
  await step("a", () => 1);
  await sleep("5m");
  await step("b", () => 1);
});

/** A task that sleeps, and is woken and completed just when a reconciliation is about to read its journal. */
async function woken(ms: number): Promise<Bench> {
  const b = await bench(nats, "nats-kv", sleeper);
  await b.submit({}, { id: "t" });
  await b.drain();
  expect((await b.task("t")).state).toBe("scheduled");
  ahead(b, ms);
  const { getHead } = b.deps.store;
  let isWoken = false;
  patched(b, {
    getHead: async (id) => {
      if (!isWoken) {
        isWoken = true;
        await dispatchDue(b.deps, AGENT);
        await b.drain();
      }
      return getHead(id);
    },
  });
  return b;
}

test("a task that goes on before its journal is read was not put back", async () => {
  await using b = await woken(600_000);
  expect(namesOf(await reconciled(b.deps))).toEqual([]);
  expect((await b.task("t")).state).toBe("completed");
});

test("a task that was overdue, and is dispatched while it is looked at, was not put back", async () => {
  await using b = await woken(3_600_000);
  expect(namesOf(await reconciled(b.deps))).toEqual(["overdue t"]);
  expect((await b.task("t")).state).toBe("completed");
});

test("a dead letter whose time comes while a reconciliation is under way has not vanished", async () => {
  const failing = agentOf(
    () => {
      throw new Error("no");
    },
    { attempts: 1 },
  );
  await using b = await bench(nats, "nats-kv", failing);
  await b.submit({}, { id: "t" });
  await b.drain();
  const { expiresAt } = (await b.task("t")) as { expiresAt: number };
  ahead(b, 7_200_000);
  expect(namesOf(await reconciled(b.deps))).toEqual([]);
  ahead(b, expiresAt - Date.now() - 2_000);
  const { getMany } = b.deps.store;
  patched(b, {
    getMany: async (ids) => {
      if (await b.deps.store.get("t")) {
        ahead(b, expiresAt - Date.now() + 2_000);
        await b.deps.store.expire(expiresAt + 2_000, 10);
      }
      return getMany(ids);
    },
  });
  expect(namesOf(await reconciled(b.deps))).toEqual([]);
  expect(await b.deps.store.get("t")).toBeUndefined();
});
