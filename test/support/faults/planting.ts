import { expect } from "vitest";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { Fatal } from "../../../shared/agent.ts";
import { dispatchDue } from "../../../shared/dispatch/sweep.ts";
import type { Head } from "../../../shared/journal/entries.ts";
import type { Task } from "../../../shared/task/document.ts";
import { streamName } from "../../../shared/task/names.ts";
import type { JsonObject } from "../../../shared/values/json.ts";
import { AGENT, agentOf, type Bench, bench } from "../bench.ts";
import { ahead, namesOf, reconciled } from "../reconciling.ts";
import { type Raw, raw } from "../servers/raw.ts";

export type Kind = "nats-kv" | "firestore-rest";

/** What a task of the stage does. */
export type Act = "echo" | "steps" | "pages" | "large" | "wait" | "fail";

/** A bench whose agent can do everything, with a way past Pawl to its store. */
export interface Stage {
  readonly b: Bench;
  readonly raw: Raw;
  readonly stream: string;
  /** How often each task's handler was started, by its own count. */
  readonly runs: Map<string, number>;
  /** Called by a task's handler when it starts. */
  readonly onStart: Map<string, () => Promise<void>>;
  submit(id: string, act?: Act, more?: { at?: number }): Promise<void>;
  drain(): Promise<void>;
  /** Changes a document past Pawl, and leaves its seal as it was. */
  edit(id: string, change: (task: Task) => object): Promise<void>;
  editHead(id: string, change: (head: Head) => object): Promise<void>;
  /** Writes to a document what no journey would, through Pawl: with a seal that fits. */
  forge(id: string, change: (task: Task) => object): Promise<void>;
  /** A document with a seal that fits and that nobody submitted, like that of another task. */
  makeUp(id: string, like: string, change: (task: Task) => object): Promise<void>;
}

export interface Planted {
  readonly name: string;
  /** What is there when the first report is made; everything is drained once after it. */
  before?(s: Stage, id: string): Promise<void>;
  /** Plants it, and says what is to be found: kinds, and what they are about. */
  plant(s: Stage, id: string): Promise<readonly string[]>;
  /** Dispatchers come by before the reconciliation, and must leave it alone. */
  readonly isSwept?: true;
  /** Only there. */
  readonly store?: Kind;
  /** Kinds that the first report names already of its task. */
  readonly named?: readonly string[];
  /** It is about more than the tasks of its own id: others may not be planted beside it. */
  readonly isAlone?: true;
  /** How much later the reconciliation is, in milliseconds; ten minutes otherwise. */
  readonly later?: number;
  /** The same of the first report, which is made at once otherwise. */
  readonly firstLater?: number;
}

export const MINUTE = 60_000;
const LONG = "x".repeat(7_000);

const actor = ({ runs, onStart }: Pick<Stage, "runs" | "onStart">) =>
  agentOf(
    async ({ id, input, step, waitFor }) => {
      runs.set(id, (runs.get(id) ?? 0) + 1);
      await onStart.get(id)?.();
      const { act } = input as { act: Act };
      if (act === "steps") return [await step("one", () => "first"), await step("two", () => "second")];
      if (act === "large") return (await step("large", () => "x".repeat(20_000))).length;
      if (act === "pages") for (let n = 0; n < 9; n++) await step(`page ${n}`, () => LONG);
      if (act === "wait") await waitFor("go");
      if (act === "fail") throw new Fatal("it can't be done");
      return `done ${id}`;
    },
    { attempts: 1 },
  );

export async function stage(nats: LocalNats, kind: Kind): Promise<Stage & AsyncDisposable> {
  const runs = new Map<string, number>();
  const onStart: Stage["onStart"] = new Map();
  const b = await bench(nats, kind, actor({ runs, onStart }));
  const past = await raw(b.deps, b.world.config.project);
  const { store } = b.deps;
  const headOf = async (id: string): Promise<Head> => {
    const head = (await store.getHead(id))?.head;
    if (!head) throw new Error(`${id} has no journal`);
    return head;
  };
  return {
    b,
    raw: past,
    stream: streamName(b.queue),
    runs,
    onStart,
    submit: async (id, act = "echo", more = {}) =>
      void (await b.submit({ act } as JsonObject, { id, ...more })),
    drain: async () => void (await b.drain()),
    edit: async (id, change) => {
      const task = await b.task(id);
      await past.putDocument(id, { ...task, ...change(task) } as Task);
    },
    editHead: async (id, change) => {
      const head = await headOf(id);
      await past.putHead(id, JSON.stringify({ ...head, ...change(head) }));
    },
    forge: async (id, change) => {
      const found = await store.get(id);
      if (!found) throw new Error(`no ${id}`);
      const next = { ...found.task, ...change(found.task), stamp: crypto.randomUUID() } as Task;
      expect((await store.replace(next, found.revision)).kind).toBe("written");
    },
    makeUp: async (id, like, change) => {
      const { seal: _, ...task } = await b.task(like);
      const next = { ...task, id, ...change(task as Task), stamp: crypto.randomUUID() } as Task;
      expect((await store.create(next)).kind).toBe("written");
    },
    [Symbol.asyncDispose]: () => b[Symbol.asyncDispose](),
  };
}

/** Each fault with the id that its tasks' ids begin with. */
export type Cast = readonly (readonly [id: string, Planted])[];

/** Plants faults beside each other. Says what is to be found, and what was found by a reconciliation that repairs. */
export async function found(s: Stage, cast: Cast): Promise<{ wanted: string[]; names: string[] }> {
  for (const [id, { before }] of cast) await before?.(s, id);
  await s.drain();
  const first = latest(cast, ({ firstLater = 0 }) => firstLater);
  if (first > 0) ahead(s.b, first);
  const already = cast.flatMap(([id, { named = [] }]) => named.map((kind) => `${kind} ${id}`));
  expect(namesOf(await reconciled(s.b.deps)).sort()).toEqual(already.sort());
  const wanted: string[] = [];
  for (const [id, { plant }] of cast) wanted.push(...(await plant(s, id)));
  ahead(s.b, first + latest(cast, ({ later = 10 * MINUTE }) => later));
  if (cast.some(([, { isSwept }]) => isSwept)) await expectNoRuns(s);
  const names = namesOf(await reconciled(s.b.deps, { repair: true }));
  return { wanted: wanted.sort(), names: names.sort() };
}

const latest = (cast: Cast, of: (fault: Planted) => number) =>
  Math.max(...cast.map(([, fault]) => of(fault)));

/** Found and named, nothing else is, nothing new by the next reconciliation; and what was over has not run again. */
export async function expectFound(s: Stage, cast: Cast): Promise<void> {
  const { wanted, names } = await found(s, cast);
  expect(names).toEqual(wanted);
  const again = namesOf(await reconciled(s.b.deps, { repair: true }));
  expect(again.filter((one) => !names.includes(one))).toEqual([]);
  await expectNoRuns(s);
}

/** Whatever dispatchers and runners do now, no handler is started. */
async function expectNoRuns(s: Stage): Promise<void> {
  const runs = new Map(s.runs);
  await dispatchDue(s.b.deps, AGENT);
  await s.drain();
  expect(s.runs).toEqual(runs);
}
