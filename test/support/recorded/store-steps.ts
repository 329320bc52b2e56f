import { emptyHead } from "../../../shared/journal/entries.ts";
import type { Revision, TaskStore, WriteResult } from "../../../shared/ports/store.ts";
import { submitted } from "../../../shared/task/create.ts";
import type { Task } from "../../../shared/task/document.ts";
import type { SweptState } from "../../../shared/task/due.ts";
import { apply } from "../../../shared/task/transitions.ts";

/** Which of the revisions that were seen is written on: the last one of the same document, or any other. */
export type Seen = "last" | "none" | number;

/** Something that is done to a store. `at`: the writer's time, so that both worlds store the same. */
export type StoreStep =
  | { readonly do: "create"; readonly id: string; readonly agent: string; readonly at: number }
  | { readonly do: "replace"; readonly id: string; readonly seen: Seen; readonly at: number }
  | { readonly do: "put head"; readonly id: string; readonly seen: Seen; readonly at: number }
  | { readonly do: "put record"; readonly name: string; readonly text: string; readonly seen: Seen }
  | { readonly do: "put part"; readonly id: string; readonly name: string; readonly text: string }
  | { readonly do: "put text"; readonly name: string; readonly text: string }
  | { readonly do: "remove texts" | "remove parts"; readonly name: string }
  | { readonly do: "get" | "get head" | "get record" | "get text" | "get part"; readonly of: string }
  | { readonly do: "get many"; readonly ids: readonly string[] }
  | {
      readonly do: "due";
      readonly agent: string;
      readonly state: SweptState;
      readonly until: number;
      readonly limit: number;
    }
  | { readonly do: "list"; readonly agent?: string; readonly state?: Task["state"]; readonly limit: number }
  | { readonly do: "position" }
  /** From one of the places that were asked for. */
  | { readonly do: "changes"; readonly from?: number; readonly limit: number };

/** What one world has answered so far: revisions and places are its own, and named by their order. */
export class Answered {
  readonly revisions: Revision[] = [];
  readonly cursors: string[] = [];
  private readonly last = new Map<string, Revision>();

  /** The number of a revision, the same wherever it is met again. */
  number(revision: Revision): number {
    const known = this.revisions.indexOf(revision);
    return known >= 0 ? known : this.revisions.push(revision) - 1;
  }

  has(document: string): boolean {
    return this.last.has(document);
  }

  seen(document: string, seen: Seen): Revision | undefined {
    if (seen === "none") return undefined;
    return seen === "last" ? this.last.get(document) : this.revisions[seen % this.revisions.length];
  }

  written(document: string, result: WriteResult): unknown {
    if (result.kind === "refused") return "refused";
    this.last.set(document, result.revision);
    return this.number(result.revision);
  }
}

const mark = (at: number) => ({ now: at, stamp: `s${at}`, by: "test" });

/** Another state each time: what it is now follows from what is stored. */
function changed(task: Task, at: number): Task {
  if (task.state === "dispatched")
    return at % 2 === 0
      ? apply(task, { type: "rollback", dueAt: at + 500, note: "test" }, mark(at))
      : apply(task, { type: "publishDuplicate", layer: "window" }, mark(at));
  if (task.state === "scheduled") return apply(task, { type: "dispatch", queue: "Q" }, mark(at));
  return task;
}

/** Does the step and says what came of it, but for what is another in each store: revisions, places, seals. */
export async function storeAnswer(store: TaskStore, step: StoreStep, known: Answered): Promise<unknown> {
  switch (step.do) {
    case "create": {
      const { id, agent, at } = step;
      const task = { id, agent, lane: 0, input: {}, inputHash: "h", at, stamp: `s${at}`, by: "test" };
      return known.written(id, await store.create(submitted(task, "Q")));
    }
    case "replace": {
      const stored = await store.get(step.id);
      const revision = known.seen(step.id, step.seen);
      if (!stored || revision === undefined) return "none";
      return known.written(step.id, await store.replace(changed(stored.task, step.at), revision));
    }
    case "put head": {
      const head = emptyHead({ id: step.id, fence: 1, epoch: 0, createdAt: 0 }, step.at, `s${step.at}`);
      const name = `head ${step.id}`;
      return known.written(name, await store.putHead(head, known.seen(name, step.seen)));
    }
    case "put record": {
      const name = `record ${step.name}`;
      return known.written(name, await store.putRecord(step.name, step.text, known.seen(name, step.seen)));
    }
    case "put part":
      return store.putPart(step.id, step.name, step.text);
    case "put text":
      return store.putText(step.name, step.text);
    case "remove texts":
      return store.removeTexts((name) => name === step.name);
    case "remove parts":
      return store.removeParts("t1", (name) => name === step.name);
    default:
      return look(store, step, known);
  }
}

type Look = Extract<StoreStep, { readonly do: `get${string}` | "due" | "list" | "position" | "changes" }>;

async function look(store: TaskStore, step: Look, known: Answered): Promise<unknown> {
  const told = ({ task, revision }: { task: Task; revision: Revision }) =>
    [unsealed(task), known.number(revision)] as const;
  switch (step.do) {
    case "get": {
      const found = await store.get(step.of);
      return found && told(found);
    }
    case "get head": {
      const found = await store.getHead(step.of);
      return found && [unsealed(found.head), known.number(found.revision)];
    }
    case "get record": {
      const found = await store.getRecord(step.of);
      return found && [found.text, known.number(found.revision)];
    }
    case "get text":
      return store.getText(step.of);
    case "get part":
      return store.getPart("t1", step.of);
    case "get many":
      return (await store.getMany(step.ids)).map((one) => one && [one.key, known.number(one.revision)]);
    case "due": {
      const { agent, state, until, limit } = step;
      const { tasks } = await store.due(agent, state, { after: 0, until }, limit);
      return tasks.map(({ task, revision }) => [task.id, known.number(revision)]);
    }
    case "list":
      return listed(store, step);
    case "position":
      return known.cursors.push((await store.position()).cursor);
    case "changes":
      return changes(store, step, known);
    default:
      return step satisfies never;
  }
}

function unsealed(one: object): object {
  const { seal: _, ...rest } = one as { seal?: unknown };
  return rest;
}

/** Pages may be short: all of them together are compared. */
async function listed(store: TaskStore, { agent, state, limit }: Extract<Look, { do: "list" }>) {
  const filter = { ...(agent !== undefined && { agent }), ...(state !== undefined && { state }) };
  const ids: string[] = [];
  for (let cursor: string | undefined, isFirst = true; isFirst || cursor; isFirst = false) {
    const page = await store.list(filter, limit, cursor);
    ids.push(...page.tasks.map(({ id, state: now }) => `${id} ${now}`));
    cursor = page.cursor;
  }
  return ids;
}

/** Each document as it came last; without a place they come in any order. */
async function changes(
  store: TaskStore,
  { from, limit }: Extract<Look, { do: "changes" }>,
  known: Answered,
): Promise<unknown> {
  const place = from === undefined ? undefined : known.cursors[from % known.cursors.length];
  const found = new Map<string, number>();
  for (let cursor = place, isLast = false; !isLast; ) {
    const page = await store.changes(cursor, limit);
    for (const { key, revision } of page.documents) {
      found.delete(key);
      found.set(key, known.number(revision));
    }
    ({ cursor, isLast } = page);
  }
  return place === undefined ? [...found].sort(([a], [b]) => (a < b ? -1 : 1)) : [...found];
}
