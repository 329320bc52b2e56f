import type { Settlement, Task } from "../../../shared/task/document.ts";
import { type Act, MINUTE, type Planted, type Stage } from "./planting.ts";

const submitted =
  (act: Act = "echo"): NonNullable<Planted["before"]> =>
  (s, id) =>
    s.submit(id, act);

/** What lies under the id of a task that is over. */
const text = (name: string, written: (task: Task) => string): Planted => ({
  name: `a document that ${name}`,
  before: submitted(),
  plant: async (s, id) => {
    const task = await s.b.task(id);
    // Firestore finds it by its other fields, which are as they were.
    await s.raw.putDocument(id, task, { json: { stringValue: written(task) } });
    if (s.b.deps.store.name.startsWith("NATS")) await s.raw.putTask(id, written(task));
    return [`unreadable ${id}`];
  },
});

const without = (field: keyof Task) => (task: Task) => JSON.stringify({ ...task, [field]: undefined });

/** A field changed past Pawl, of a task that is over or is left open by the first report. */
const edited = (name: string, change: (task: Task) => object, act: Act = "echo"): Planted => ({
  name,
  before: submitted(act),
  plant: async (s, id) => {
    await s.edit(id, change);
    return [`altered ${id}`];
  },
});

/** The same of one that lies in its queue. */
const editedQueued = (name: string, change: (task: Task) => object): Planted => ({
  name,
  plant: async (s, id) => {
    await s.submit(id);
    await s.edit(id, change);
    return [`altered ${id}`];
  },
});

const cost = (inputTokens: number, usd: number) => () => ({
  spent: { turns: 1, inputTokens, outputTokens: 0, usd },
});

const settledAt = (s: Stage, seq: number): Settlement => ({
  queue: s.stream,
  seq,
  dispatch: 1,
  outcome: "completed",
  at: Date.now(),
});

/** Each under the other's id. */
async function swap(s: Stage, a: string, b: string): Promise<readonly string[]> {
  const [first, second] = [await s.b.task(a), await s.b.task(b)];
  await s.raw.putDocument(a, second);
  await s.raw.putDocument(b, first);
  return [`altered ${a}`, `altered ${b}`];
}

const queryField = (name: string, fields: object, act: Act = "echo"): Planted => ({
  name: `a field that queries look for and that differs: ${name}`,
  store: "firestore-rest",
  before: submitted(act),
  plant: async (s, id) => {
    await s.raw.putDocument(id, await s.b.task(id), { ...fields });
    return [`altered ${id}`];
  },
});

export const unreadableDocuments: readonly Planted[] = [
  text("is no JSON", () => "{no JSON"),
  text("is empty", () => ""),
  text("is null", () => "null"),
  text("is an empty object", () => "{}"),
  text("is a list", () => "[]"),
  text("lacks what it settled", without("settled")),
  text("lacks its history", without("history")),
  text("lacks its input", without("input")),
  text("has a text for a time", (task) => JSON.stringify({ ...task, createdAt: "yesterday" })),
  text("has a state that there is not", (task) => JSON.stringify({ ...task, state: "finished" })),
  {
    name: "a queued task's document that is no JSON",
    plant: async (s, id) => {
      await s.submit(id);
      const task = await s.b.task(id);
      await s.raw.putDocument(id, task, { json: { stringValue: "gone" } });
      if (s.b.deps.store.name.startsWith("NATS")) await s.raw.putTask(id, "gone");
      return [`unreadable ${id}`];
    },
  },
];

export const alteredDocuments: readonly Planted[] = [
  {
    name: "two completed documents swapped",
    before: async (s, id) => {
      for (const one of [`${id}1`, `${id}2`]) await s.submit(one);
    },
    plant: (s, id) => swap(s, `${id}1`, `${id}2`),
  },
  {
    name: "a live document swapped with a completed one",
    before: submitted(),
    plant: async (s, id) => {
      await s.submit(`${id}live`);
      return swap(s, id, `${id}live`);
    },
  },
  edited("a result altered", () => ({ result: "another" })),
  edited("an input altered", () => ({ input: { act: "steps" } })),
  editedQueued("a queued task's input altered", () => ({ input: { act: "steps" } })),
  edited("a completed document without executions", () => ({ executions: 0 })),
  edited("a completed task flipped to cancelled", ({ state: _, ...task }) => ({
    ...task,
    state: "cancelled",
    result: undefined,
  })),
  edited("a completed task flipped to failed", () => ({
    state: "failed",
    error: { code: "handler_failed", message: "no", phase: "handler" },
  })),
  edited("a dead letter flipped to completed", () => ({ state: "completed", result: 1 }), "fail"),
  editedQueued("a live task's fence lowered", ({ fence }) => ({ fence: fence - 1 })),
  edited("a waiting task's fence lowered", ({ fence }) => ({ fence: fence - 1 }), "wait"),
  edited("negative tokens", cost(-5, 0)),
  edited("a million dollars", cost(5, 1_000_000)),
  edited("a history that lacks an entry", ({ history }) => ({ history: history.slice(1) })),
  edited("an end that comes sooner", ({ createdAt }) => ({ expiresAt: createdAt + MINUTE })),
  edited("a birth that was moved", ({ createdAt }) => ({ createdAt: createdAt - MINUTE })),
  edited("a seal of nothing", ({ stamp }) => ({
    seal: { own: "0.AAAAAAAAAAAAAAAAAAAAAA", before: "", stamp },
  })),
  edited(
    "an answer put into a waiting task by hand",
    () => ({ signals: [{ name: "go", value: true, at: Date.now() }] }),
    "wait",
  ),
  edited("a waiting task cancelled by hand", () => ({ cancelRequested: { at: 1, by: "nobody" } }), "wait"),
  edited("a settled sequence taken out of a document", () => ({ settled: [] })),
  {
    name: "a settled sequence beyond the stream's end",
    before: submitted(),
    plant: async (s, id) => {
      await s.edit(id, ({ settled }) => ({ settled: [...settled, settledAt(s, 1_000_000)] }));
      return [`altered ${id}`];
    },
  },
  {
    name: "a scheduled task moved to a century later",
    before: (s, id) => s.submit(id, "echo", { at: Date.now() + 1_440 * MINUTE }),
    plant: async (s, id) => {
      await s.edit(id, () => ({ dueAt: Date.now() + 52_560_000 * MINUTE }));
      return [`altered ${id}`];
    },
  },
  {
    name: "a document under another key than its id",
    before: submitted(),
    plant: async (s, id) => {
      await s.raw.putDocument(`${id}copy`, await s.b.task(id));
      return [`altered ${id}copy`];
    },
  },
  {
    name: "a queued document under another key too",
    plant: async (s, id) => {
      await s.submit(id);
      await s.raw.putDocument(`${id}copy`, await s.b.task(id));
      await s.drain();
      return [`altered ${id}copy`];
    },
  },
  {
    name: "a seal stripped after the first report",
    before: submitted(),
    later: 180 * MINUTE,
    plant: async (s, id) => {
      await s.edit(id, () => ({ seal: undefined, updatedAt: Date.now() + 120 * MINUTE }));
      return [`altered ${id}`];
    },
  },
  {
    name: "a completed document without executions, with a seal that fits",
    before: submitted(),
    plant: async (s, id) => {
      await s.forge(id, () => ({ executions: 0 }));
      return [`made_up ${id}`];
    },
  },
  {
    name: "a completed document that was made up, with a seal that fits",
    before: submitted(),
    plant: async (s, id) => {
      await s.makeUp(`${id}never`, id, () => ({ settled: [], executions: 1 }));
      return [`made_up ${id}never`];
    },
  },
  queryField("its state", { state: { stringValue: "failed" } }),
  queryField("its agent", { agent: { stringValue: "another" } }),
  queryField(
    "when a waiting task is looked at",
    { sweepAt: { timestampValue: "2000-01-01T00:00:00Z" } },
    "wait",
  ),
  queryField("when it may be removed", { expiresAt: { nullValue: null } }),
  queryField("its shard", { shard: { integerValue: "77" } }),
];
