import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadTasks } from "../../../bench/load.ts";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import type { TaskStore } from "../../../shared/ports/store.ts";
import { total } from "../../../shared/reconcile/figures/tally.ts";
import { agentOf, type Bench, bench } from "../../support/bench.ts";
import { namesOf, patched, reconciled } from "../../support/reconciling.ts";
import { hasEmulator, testNats } from "../../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const kinds = [
  { kind: "nats-kv" as const, here: true },
  { kind: "firestore-rest" as const, here: hasEmulator },
];
const stepper = agentOf(({ step }) => step("s", () => 1));
/** Longer ago than what the next report looks at once more. */
const longAgo = () => Date.now() - 600_000;

const READS = ["get", "getMany", "changes", "getHead", "getPart", "getText", "list"] as const;
type Reads = Record<(typeof READS)[number] | "documents" | "headsAtOnce", number>;

/** Counts what the store is asked from now on; `documents` come by `changes`. */
function counted(b: Bench): Reads {
  const { store } = b.deps;
  const none = [...READS, "documents", "headsAtOnce"].map((name) => [name, 0] as const);
  const reads = Object.fromEntries(none) as Reads;
  let heads = 0;
  const counting = READS.map((name) => {
    const read = store[name] as (...asked: unknown[]) => Promise<unknown>;
    const asked = (...given: unknown[]) => {
      reads[name]++;
      return read(...given);
    };
    return [name, asked] as const;
  });
  patched(b, {
    ...(Object.fromEntries(counting) as Partial<TaskStore>),
    changes: async (...asked) => {
      reads.changes++;
      const page = await store.changes(...asked);
      reads.documents += page.documents.length;
      return page;
    },
    getHead: async (id) => {
      reads.getHead++;
      reads.headsAtOnce = Math.max(reads.headsAtOnce, ++heads);
      return store.getHead(id).finally(() => heads--);
    },
  });
  return reads;
}

describe.each(kinds)("$kind", ({ kind, here }) => {
  const OLD = kind === "nats-kv" ? 2_000 : 300;

  test.skipIf(!here)(
    "the next report reads what changed, however much is over, and journals of nothing else",
    async () => {
      await using b = await bench(nats, kind, stepper);
      await loadTasks(b.deps, b.queue, { count: OLD, journals: 0.1, at: longAgo() });
      const first = await reconciled(b.deps);
      expect(namesOf(first)).toEqual([]);
      expect(total(first.report.agents)).toMatchObject({ created: OLD, completed: OLD });

      for (let i = 0; i < 3; i++) await b.submit({ i }, { id: `new-${i}` });
      expect(await b.drain()).toEqual({ completed: 3 });
      const reads = counted(b);
      const second = await reconciled(b.deps);
      expect(namesOf(second)).toEqual([]);
      expect(second.documents).toBe(3);
      expect(total(second.report.agents)).toMatchObject({ created: OLD + 3, completed: OLD + 3 });
      expect(reads).toMatchObject({ get: 0, getMany: 0, list: 0, documents: 3, getHead: 3 });
      expect(reads.changes).toBeLessThanOrEqual(2);
      // Two reports' texts, and what the last one left open.
      expect(reads.getPart + reads.getText).toBeLessThanOrEqual(10);
    },
    120_000,
  );

  test.skipIf(!here)(
    "journals are read many at once, but not too many",
    async () => {
      await using b = await bench(nats, kind, stepper);
      await loadTasks(b.deps, b.queue, { count: 100, journals: 1, at: longAgo() });
      const reads = counted(b);
      expect(namesOf(await reconciled(b.deps))).toEqual([]);
      expect(reads.getHead).toBe(100);
      expect(reads.headsAtOnce).toBeGreaterThan(1);
      expect(reads.headsAtOnce).toBeLessThanOrEqual(16);
    },
    120_000,
  );

  test.skipIf(!here)(
    "tasks that are not over are asked for 200 at a time, and their journals read only where they changed",
    async () => {
      await using b = await bench(nats, kind, stepper);
      await loadTasks(b.deps, b.queue, { count: 500, live: 1, journals: 0.1, at: longAgo() });
      expect(namesOf(await reconciled(b.deps))).toEqual([]);
      const reads = counted(b);
      const second = await reconciled(b.deps);
      expect(namesOf(second)).toEqual([]);
      expect(second.report.live).toEqual({ tested: { waiting: 500 } });
      expect(reads).toMatchObject({ get: 0, getMany: 3, list: 0, documents: 0, getHead: 0 });
      // The list of them once to know them by, once to ask for them, and once as it is left; and three texts of two reports, with one to add to.
      expect(reads.getPart + reads.getText).toBeLessThanOrEqual(12);
    },
    120_000,
  );
});
