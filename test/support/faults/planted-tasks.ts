import { randomUUID } from "node:crypto";
import { expireTasks } from "../../../shared/dispatch/expire.ts";
import { signal } from "../../../shared/dispatch/operate.ts";
import { dispatchDue } from "../../../shared/dispatch/sweep.ts";
import type { Head } from "../../../shared/journal/entries.ts";
import type { Task } from "../../../shared/task/document.ts";
import { pageHash, pageName } from "../../../shared/task/settled.ts";
import { sha256 } from "../../../shared/values/json.ts";
import { AGENT } from "../bench.ts";
import { until } from "../time/until.ts";
import { type Act, MINUTE, type Planted, type Stage } from "./planting.ts";

const DAY = 1_440 * MINUTE;
const kept = new WeakMap<Stage, Map<string, Task>>();

/** Keeps a document as it is, as a backup would. */
async function backUp(s: Stage, id: string): Promise<void> {
  const all = kept.get(s) ?? new Map<string, Task>();
  kept.set(s, all.set(id, await s.b.task(id)));
}

async function restore(s: Stage, id: string): Promise<void> {
  await s.raw.putDocument(id, kept.get(s)?.get(id) as Task);
}

/** A task's journal, written since the last report and then changed past Pawl. */
const journal = (
  name: string,
  act: Act,
  change: (s: Stage, id: string, head: Head) => Promise<void>,
  kind = "altered",
): Planted => ({
  name,
  plant: async (s, id) => {
    await s.submit(id, act);
    await s.drain();
    const head = (await s.b.deps.store.getHead(id))?.head as Head;
    await change(s, id, head);
    return [`${kind} ${id}`];
  },
});

const recent =
  (change: (recent: Head["recent"]) => Head["recent"]) =>
  (s: Stage, id: string): Promise<void> =>
    s.editHead(id, (head) => ({ recent: change(head.recent) }));

/** The first page of a journal, or the first part of its first value. */
const partOf = ({ pages, recent: [first] }: Head): string =>
  pages[0] ?? (first as { parts?: string[] }).parts?.[0] ?? "";

const putPart = (text: string) => (s: Stage, id: string, head: Head) =>
  s.b.deps.store.putPart(id, partOf(head), text);

export const journals: readonly Planted[] = [
  journal("a journal that is no JSON", "steps", (s, id) => s.raw.putHead(id, "none"), "unreadable"),
  journal("a journal that is other JSON", "steps", (s, id) => s.raw.putHead(id, '{"a":1}'), "unreadable"),
  journal("a journal that is null", "steps", (s, id) => s.raw.putHead(id, "null"), "unreadable"),
  journal("a page of a journal that is other JSON", "pages", putPart('{"a":1}')),
  journal("a page of a journal that is no JSON", "pages", putPart("none")),
  journal(
    "a page of a journal that is gone",
    "pages",
    (s, id, head) => s.b.deps.store.removeParts(id, (name) => name === partOf(head)),
    "journal_missing",
  ),
  journal(
    "a step's value altered in the journal",
    "steps",
    recent(([first, ...rest]) => [{ ...first, value: "lie" } as Head["recent"][number], ...rest]),
  ),
  journal("a large step's value altered", "large", putPart(JSON.stringify("y".repeat(20_000)))),
  journal(
    "a journal's entry replaced by a double",
    "steps",
    recent(([first]) => [first, first] as Head["recent"]),
  ),
  journal(
    "a journal's entry taken out",
    "steps",
    recent((all) => all.slice(1)),
  ),
  journal("a journal's cost altered", "steps", (s, id) =>
    s.editHead(id, ({ spent }) => ({ spent: { ...spent, usd: -1 } })),
  ),
  journal("the journal of another task", "steps", async (s, id, head) => {
    await s.raw.putHead(id, JSON.stringify({ ...head, taskId: "another" }));
  }),
  {
    name: "a page of settled sequences altered",
    plant: async (s, id) => {
      await s.submit(id);
      await s.drain();
      const page = JSON.stringify((await s.b.task(id)).settled);
      const settledHash = pageHash(undefined, page);
      await s.b.deps.store.putPart(id, pageName(0), page);
      await s.forge(id, () => ({ settledPages: 1, settledHash }));
      await s.b.deps.store.putPart(id, pageName(0), page.replace('"dispatch":1', '"dispatch":2'));
      return [`altered ${id}`];
    },
  },
];

const inDoubt = async (s: Stage, id: string): Promise<void> => {
  await s.submit(id, "echo", { at: Date.now() + DAY });
  await s.forge(id, () => ({ state: "in_doubt", effect: "post#1", tries: 1 }));
};

/** A document removed past Pawl. */
const removed = (name: string, before: Planted["before"], more: Partial<Planted> = {}): Planted => ({
  name,
  ...(before && { before }),
  plant: async (s, id) => {
    await s.raw.removeTask(id);
    return [`vanished ${id}`];
  },
  ...more,
});

const strayOf = async ({ settled }: Task) => {
  const { queue, seq } = settled.at(-1) as Task["settled"][number];
  return `stray-${sha256(`${queue}:${seq}`).slice(0, 32)}`;
};

export const vanished: readonly Planted[] = [
  removed("a waiting task removed", (s, id) => s.submit(id, "wait")),
  removed("a scheduled task removed", (s, id) => s.submit(id, "echo", { at: Date.now() + DAY })),
  removed("a dead letter removed", (s, id) => s.submit(id, "fail")),
  removed("a task in doubt removed", inDoubt, { named: ["in_doubt"] }),
  // Beside faults whose first report comes later it would have ended long before.
  removed("a task removed that ended when the report was made", (s, id) => s.submit(id), { isAlone: true }),
  {
    name: "a conflict's dead letter removed",
    before: async (s, id) => {
      await s.submit(id);
      await s.drain();
      const data = new TextEncoder().encode(JSON.stringify({ v: 1, input: { act: "steps" } }));
      await s.b.deps.bus.publish(s.b.queue, { taskId: id, data, msgId: randomUUID(), headers: {} });
    },
    plant: async (s, id) => {
      const stray = await strayOf(await s.b.task(id));
      await s.raw.removeTask(stray);
      return [`vanished ${stray}`];
    },
  },
  {
    name: "a dead letter whose time had come, removed by expiry: nothing",
    isAlone: true,
    firstLater: 120 * MINUTE,
    later: 92 * DAY,
    before: (s, id) => s.submit(id, "fail"),
    plant: async ({ b }) => {
      const later = { ...b.deps, clock: { ...b.deps.clock, now: () => Date.now() + 91 * DAY } };
      const count = await expireTasks(later, new AbortController().signal);
      if (count !== 1) throw new Error(`${count} were removed`);
      return [];
    },
  },
  {
    name: "a task that ended since the last report, removed",
    isAlone: true,
    plant: async (s, id) => {
      await s.submit(id);
      await s.drain();
      const [{ seq } = { seq: 0 }] = (await s.b.task(id)).settled;
      await s.raw.removeTask(id);
      return [`unexplained ${s.stream}#${seq}`];
    },
  },
];

const waited = async (s: Stage, id: string): Promise<void> => {
  await s.submit(id, "wait");
  await s.drain();
  await backUp(s, id);
  await signal(s.b.deps, id, "go", true);
};

const queued =
  (act: Act = "echo") =>
  async (s: Stage, id: string): Promise<void> => {
    await s.submit(id, act);
    await backUp(s, id);
  };

const scheduled = async (s: Stage, id: string): Promise<void> => {
  await s.submit(id, "echo", { at: Date.now() + 50 });
  await backUp(s, id);
  await until("it is dispatched", async () => {
    await dispatchDue(s.b.deps, AGENT);
    return (await s.b.task(id)).state === "dispatched";
  });
};

/** A finished document put back as a backup had it: while its report remembers it, and long after it ended. */
const putBack = (name: string, before: NonNullable<Planted["before"]>): Planted[] => {
  const plant: Planted["plant"] = async (s, id) => {
    await restore(s, id);
    return [`rolled_back ${id}`];
  };
  const later = 40 * MINUTE;
  return [
    { name: `a finished task put back to ${name}`, before, plant, later },
    {
      name: `a task finished long ago put back to ${name}`,
      before,
      plant,
      later,
      firstLater: 20 * MINUTE,
      isSwept: true,
    },
  ];
};

/** Finished and put back between two reports: what it settled last is nowhere any more. */
const putBackUnseen = (name: string, run: NonNullable<Planted["before"]>): Planted => ({
  name: `a task put back to ${name}, whose journal knows a later fence`,
  isAlone: true,
  isSwept: true,
  later: 40 * MINUTE,
  plant: async (s, id) => {
    await run(s, id);
    await s.drain();
    const { seq } = (await s.b.task(id)).settled.at(-1) as Task["settled"][number];
    await restore(s, id);
    return [`rolled_back ${id}`, `unexplained ${s.stream}#${seq}`];
  },
});

export const rolledBack: readonly Planted[] = [
  ...putBack("dispatched", queued()),
  ...putBack("dispatched, with a journal", queued("steps")),
  ...putBack("dispatched, as a dead letter", queued("fail")),
  ...putBack("scheduled, overdue", scheduled),
  ...putBack("running", async (s, id) => {
    await s.submit(id);
    s.onStart.set(id, () => backUp(s, id));
  }),
  ...putBack("waiting", waited),
  putBackUnseen("dispatched", queued("steps")),
  putBackUnseen("waiting", waited),
];
