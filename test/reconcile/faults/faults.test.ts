import { jetstreamManager } from "@nats-io/jetstream";
import { Kvm } from "@nats-io/kv";
import { nanos } from "@nats-io/nats-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { emptyHead } from "../../../shared/journal/entries.ts";
import type { HistoryEntry, Settlement, Task } from "../../../shared/task/document.ts";
import { consumerName, streamName, subjectPrefix } from "../../../shared/task/names.ts";
import { agentOf, type Bench, bench } from "../../support/bench.ts";
import { ahead, namesOf, reconciled } from "../../support/reconciling.ts";
import { next } from "../../support/servers/bus.ts";
import { hasEmulator, testNats } from "../../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const MINUTES = 60_000;
const echo = agentOf(() => "done");

/** Writes to a document what no journey would. */
async function tamper(b: Bench, id: string, change: (task: Task) => object): Promise<void> {
  const found = await b.deps.store.get(id);
  if (!found) throw new Error(`no ${id}`);
  const next = { ...found.task, ...change(found.task), stamp: crypto.randomUUID() } as Task;
  expect((await b.deps.store.replace(next, found.revision)).kind).toBe("written");
}

/** A task that was never published: like `q`, and as it would be written today. */
async function made(b: Bench, id: string, change: (task: Task) => object): Promise<void> {
  const { seal: _, ...q } = await b.task("q");
  const stamp = crypto.randomUUID();
  const task = { ...q, id, ...change(q as Task), stamp } as Task;
  expect((await b.deps.store.create(task)).kind).toBe("written");
}

const stream = (b: Bench) => streamName(b.queue);
const jsm = (b: Bench) => jetstreamManager(b.deps.nc);
const settled = (b: Bench, seq: number, outcome: Settlement["outcome"]): Settlement => ({
  queue: stream(b),
  seq,
  dispatch: 1,
  outcome,
  at: Date.now(),
});
const lastOf = ({ history }: Task) => history.at(-1) as HistoryEntry;

interface Fault {
  readonly name: string;
  plant(b: Bench): Promise<void>;
  /** Kinds and what they are about; {s} is the stream. */
  readonly found: readonly string[];
}

/** Before each, five tasks are completed and explained; `q` is queued, and its message has sequence 6. */
const faults: readonly Fault[] = [
  {
    name: "a message deleted by hand",
    plant: async (b) => void (await (await jsm(b)).streams.deleteMessage(stream(b), 6)),
    found: ["unexplained {s}#6", "orphan q"],
  },
  {
    name: "a purged subject",
    plant: async (b) => {
      await (await jsm(b)).streams.purge(stream(b), { filter: `${subjectPrefix(b.queue)}q` });
    },
    found: ["unexplained {s}#6", "orphan q"],
  },
  {
    name: "a completed document removed",
    plant: async (b) => {
      await b.submit({}, { id: "gone" });
      await b.drain();
      const bucket = await new Kvm(b.deps.nc).open(`${b.world.config.settings.namespace}-tasks`);
      await bucket.purge("task.gone");
    },
    found: ["unexplained {s}#7"],
  },
  {
    name: "a sequence settled by nobody: acked by a stranger",
    plant: async (b) => {
      await (await next(b.deps, b.queue)).ack();
    },
    found: ["unexplained {s}#6", "orphan q"],
  },
  {
    name: "a stream restored from an older state",
    plant: async (b) => {
      await b.drain();
      const streams = (await jsm(b)).streams;
      await streams.delete(stream(b));
      await b.deps.bus.ensure(b.queue);
      await streams.purge(stream(b), { seq: 4 });
    },
    found: ["stream_rewound {s}", "consumer_recreated {s}", "unexplained {s}#1"],
  },
  {
    name: "a consumer recreated",
    plant: async (b) => {
      await (await jsm(b)).consumers.delete(stream(b), consumerName(b.queue));
      await b.deps.bus.ensure(b.queue);
    },
    found: ["consumer_recreated {s}"],
  },
  {
    name: "a second stream generation",
    plant: async (b) => {
      const settings = { ...b.deps.settings, generation: 2 };
      Object.assign(b.deps, { settings });
      await b.deps.bus.ensure({ ...b.queue, generation: 2 });
    },
    found: ["old_generation {s}"],
  },
  {
    name: "a result written twice",
    plant: (b) =>
      tamper(b, "t1", (task) => ({ history: [...task.history, { ...lastOf(task), stamp: "again" }] })),
    found: ["completed_twice t1"],
  },
  {
    name: "a duplicate execution recorded",
    plant: (b) => tamper(b, "t1", () => ({ executions: 2 })),
    found: ["executed_unfenced t1"],
  },
  {
    name: "two holders under one fence",
    plant: (b) =>
      tamper(b, "t1", ({ history }) => ({
        history: history.flatMap((one) => (one.event === "claim" ? [one, { ...one, by: "another" }] : [one])),
      })),
    found: ["executed_unfenced t1"],
  },
  {
    name: "two documents that claim one sequence",
    plant: async (b) => {
      await b.submit({}, { id: "one" });
      await b.drain();
      await tamper(b, "t2", (task) => ({ settled: [...task.settled, settled(b, 7, "completed")].slice(-1) }));
    },
    found: ["settled_twice one|t2"],
  },
  {
    name: "a receipt without its intent",
    plant: async (b) => {
      const task = (await b.task("t1")) as Task;
      const recent = [{ kind: "receipt" as const, key: "post#1", value: 1 }];
      await b.deps.store.putHead({ ...emptyHead(task, 1, "s"), count: 1, recent });
      await tamper(b, "t1", () => ({ journaled: 1 }));
    },
    found: ["receipt_without_intent t1"],
  },
  {
    name: "a journal that is gone",
    plant: (b) => tamper(b, "t1", () => ({ journaled: 3 })),
    found: ["journal_missing t1"],
  },
  {
    name: "an ack lost",
    plant: (b) =>
      tamper(b, "q", () => ({
        state: "completed",
        result: 1,
        expiresAt: Date.now() + 90 * 86_400_000,
        settled: [settled(b, 6, "completed")],
        executions: 1,
        fence: 1,
      })),
    found: ["ack_lag {s}#6"],
  },
  {
    name: "a TTL shorter than the horizon",
    plant: (b) => tamper(b, "t1", () => ({ expiresAt: Date.now() + 1_000 })),
    found: ["ttl_short t1"],
  },
  {
    name: "a clock set back",
    plant: (b) =>
      tamper(b, "t1", ({ history }) => ({
        history: history.map((one) => (one.event === "claim" ? { ...one, at: one.at - MINUTES } : one)),
      })),
    found: ["clock_back t1"],
  },
  {
    name: "an ack_wait that was changed by hand",
    plant: async (b) => {
      const consumers = (await jsm(b)).consumers;
      await consumers.update(stream(b), consumerName(b.queue), { ack_wait: nanos(5_000) });
    },
    found: ["queue_unsafe {s} ack_wait"],
  },
  {
    name: "a task stuck in scheduled",
    plant: (b) => made(b, "n", () => ({ state: "scheduled", dueAt: Date.now() - 60 * MINUTES })),
    found: ["overdue n"],
  },
  {
    name: "a task stuck in waiting, past its deadline",
    plant: (b) =>
      made(b, "n", () => ({ state: "waiting", waitingFor: ["x"], dueAt: Date.now() - 60 * MINUTES })),
    found: ["overdue n"],
  },
  {
    name: "a task stuck in dispatched, without a message",
    plant: (b) => made(b, "n", () => ({ state: "dispatched", queue: stream(b) })),
    found: ["orphan n"],
  },
  {
    name: "a task stuck in running, without a message",
    plant: (b) =>
      made(b, "n", () => ({
        state: "running",
        queue: stream(b),
        seq: 6,
        token: "x",
        runner: "r",
        via: "s",
        started: true,
        fresh: false,
      })),
    found: ["orphan n"],
  },
  {
    name: "a task stuck in running, its message there and nobody holding it",
    plant: (b) =>
      tamper(b, "q", () => ({
        state: "running",
        queue: stream(b),
        seq: 6,
        token: "x",
        runner: "r",
        via: "s",
        started: true,
        fresh: false,
        fence: 1,
      })),
    found: ["unheld q"],
  },
  {
    name: "a task in doubt",
    plant: (b) => made(b, "n", () => ({ state: "in_doubt", effect: "post#1", tries: 1 })),
    found: ["in_doubt n"],
  },
  {
    name: "a finished task put back to dispatched, as from a backup",
    plant: (b) =>
      tamper(b, "t1", ({ createdAt }) => ({
        state: "dispatched",
        queue: stream(b),
        settled: [],
        executions: 0,
        createdAt: createdAt - 5 * MINUTES,
      })),
    found: ["rolled_back t1"],
  },
];

async function planted(kind: "nats-kv" | "firestore-rest", { plant }: Fault): Promise<Bench> {
  const b = await bench(nats, kind, echo);
  for (const id of ["t1", "t2", "t3", "t4", "t5"]) await b.submit({}, { id });
  await b.drain();
  expect(namesOf(await reconciled(b.deps))).toEqual([]);
  await b.submit({}, { id: "q" });
  await plant(b);
  // Ten minutes later: long enough for what is only under way to be over.
  ahead(b, 10 * MINUTES);
  return b;
}

const expected = (b: Bench, { found }: Fault) => found.map((one) => one.replace("{s}", stream(b))).sort();

describe("planted faults", () => {
  test.each(faults)("$name is found and named, and nothing else is", async (fault) => {
    await using b = await planted("nats-kv", fault);
    const found = namesOf(await reconciled(b.deps)).sort();
    const wanted = expected(b, fault);
    // Which of two documents is the second depends on the order in which they are read.
    for (const [i, one] of wanted.entries())
      expect(found[i]).toMatch(new RegExp(`^${one.replace("|", "$|^settled_twice ")}$`));
    expect(found).toHaveLength(wanted.length);
  });

  test.skipIf(!hasEmulator).each(faults.filter(({ found }) => found.every((one) => / (t1|n)$/.test(one))))(
    "the same in Firestore: $name",
    async (fault) => {
      await using b = await planted("firestore-rest", fault);
      expect(namesOf(await reconciled(b.deps)).sort()).toEqual(expected(b, fault));
    },
  );
});
