import { leaseRegister } from "../../../shared/adapters/kv/lease.ts";
import type { Stored, TaskStore } from "../../../shared/ports/store.ts";
import type { Network } from "./network.ts";
import type { Process } from "./process.ts";
import type { Time } from "./time.ts";

/** What stores of one world share. */
export interface StoreWorld {
  readonly time: Time;
  readonly network: Network;
  /** What all processes write to. */
  readonly documents: TaskStore;
  /** Of a store of several copies, whose reads may be stale. */
  readonly copies?: Copies;
}

/** Values as they go through the network: nobody holds a reference into another process, or into the server. */
function sent<T>(value: T): T {
  return value === undefined ? value : (JSON.parse(JSON.stringify(value)) as T);
}

/** What each document was, and when: what a leader that was deposed still answers is how it was then. */
export class Copies {
  private readonly versions = new Map<string, { at: number; stored: Stored }[]>();

  written(at: number, stored: Stored): void {
    const before = this.versions.get(stored.task.id) ?? [];
    before.push({ at, stored });
    this.versions.set(stored.task.id, before);
  }

  asOf(id: string, moment: number): Stored | undefined {
    return this.versions.get(id)?.findLast(({ at }) => at <= moment)?.stored;
  }
}

/** The store as one process has it: the product's port, over a network that may lose what is said. */
export function simulatedStore(world: StoreWorld, process: Process): TaskStore {
  const { network, documents, copies } = world;
  const ask = <T>(what: string, act: () => Promise<T>, deposed?: (since: number) => Promise<T>): Promise<T> =>
    network.ask(process, { to: "store", what, act, ...(deposed && { deposed }) });
  return {
    name: "a simulated store",
    pageSize: documents.pageSize,
    get: (id) =>
      ask(
        `get ${id}`,
        () => documents.get(id),
        copies && (async (since: number) => sent(copies.asOf(id, since))),
      ),
    create: (task) => {
      const copy = sent(task);
      return ask(`create ${task.id} ${task.state}`, () => documents.create(copy));
    },
    replace: (task, seen) => {
      const copy = sent(task);
      return ask(`replace ${task.id} ${task.history.at(-1)?.event}`, () => documents.replace(copy, seen));
    },
    ...(copies && {
      attest: leaseRegister({
        get: (what, key) => ask(what, () => documents.getRecord(key)),
        put: (what, key, text, seen) => ask(what, () => documents.putRecord(key, text, seen)),
      }),
    }),
    due: (agent, state, range, limit) => ask(`due ${state}`, () => documents.due(agent, state, range, limit)),
    list: (filter, limit, cursor) => ask("list", () => documents.list(filter, limit, cursor)),
    position: () => ask("position", () => documents.position()),
    changes: (after, limit) => ask("changes", () => documents.changes(after, limit)),
    getMany: (ids) => ask(`get ${ids.length}`, () => documents.getMany(ids)),
    getHead: (id) => ask(`get journal ${id}`, () => documents.getHead(id)),
    putHead: (head, seen) => {
      const copy = sent(head);
      return ask(`put journal ${head.taskId} ${head.count}`, () => documents.putHead(copy, seen));
    },
    putPart: (id, name, text) => ask(`put part ${id} ${name}`, () => documents.putPart(id, name, text)),
    getPart: (id, name) => ask(`get part ${id} ${name}`, () => documents.getPart(id, name)),
    removeParts: (id, isOld) => ask("remove parts", () => documents.removeParts(id, isOld)),
    expire: (now, limit) => ask("expire", () => documents.expire(now, limit)),
    getRecord: (name) => ask(`get record ${name}`, () => documents.getRecord(name)),
    putRecord: (name, text, seen) => ask(`put record ${name}`, () => documents.putRecord(name, text, seen)),
    putText: (name, text) => ask(`put text ${name}`, () => documents.putText(name, text)),
    getText: (name) => ask(`get text ${name}`, () => documents.getText(name)),
    removeTexts: (isOld) => ask("remove texts", () => documents.removeTexts(isOld)),
    close: async () => {},
  };
}
