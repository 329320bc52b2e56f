import type { Wired } from "../../../functions/wiring/wire.node.ts";
import type { Entry } from "../../../shared/journal/entries.ts";
import { readJournal } from "../../../shared/journal/journal.ts";
import type { State, Task } from "../../../shared/task/document.ts";
import type { Json } from "../../../shared/values/json.ts";
import { patiently } from "../../support/time/until.ts";

/** What Pawl has stored of a task, as far as the oracle goes by it. */
export interface StoredTask {
  readonly id: string;
  readonly state: State;
  readonly mail: "keyed" | "verified" | "blind";
  /** Of a completed one: when its completion was written, and with what. */
  readonly completedAt?: number;
  readonly result: Readonly<Record<string, Json>>;
  /** Its calls that are done, by name: when their result was appended to the journal, and what it was. */
  readonly calls: ReadonlyMap<string, { readonly storedAt: number; readonly value: Json | undefined }>;
  /** Every time it was in doubt: about what, when that was begun, and when the doubt was written. */
  readonly doubts: readonly { readonly effect: string; readonly begun: number; readonly at: number }[];
  readonly settled: Task["settled"];
  readonly executions: number;
  readonly createdAt: number;
}

const AT_ONCE = 8;

/** Documents and journals of these tasks, once nothing moves any more. */
export async function readStored(deps: Wired, ids: readonly string[]): Promise<Map<string, StoredTask>> {
  const found = new Map<string, StoredTask>();
  const left = ids.values();
  const reader = async () => {
    for (const id of left) {
      const task = (await patiently(() => deps.store.get(id)))?.task;
      if (!task) continue;
      const journal = await patiently(() => readJournal(deps, id, () => {}));
      found.set(id, storedTask(task, journal?.entries ?? []));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, reader));
  return found;
}

export function storedTask(task: Task, entries: readonly Entry[]): StoredTask {
  const { id, state, input, settled, executions, createdAt } = task;
  const calls = new Map<string, { storedAt: number; value: Json | undefined }>();
  for (const entry of entries) {
    if (entry.kind !== "step" && entry.kind !== "receipt") continue;
    calls.set(entry.key.replace(/#1$/, ""), { storedAt: entry.when ?? 0, value: entry.value });
  }
  const doubts = task.history
    .filter(({ event }) => event === "doubt")
    .flatMap(({ at }) => {
      const intent = entries.findLast(
        (entry) => entry.kind === "intent" && entry.of === "effect" && (entry.when ?? 0) <= at,
      );
      return intent ? [{ effect: intent.key, begun: intent.when ?? 0, at }] : [];
    });
  const result = state === "completed" ? (task.result as Record<string, Json>) : {};
  const completedAt = task.history.find(({ event }) => event === "complete")?.at;
  const { mail } = input as { mail: StoredTask["mail"] };
  const ended = completedAt !== undefined && { completedAt };
  return { id, state, mail, ...ended, result, calls, doubts, settled, executions, createdAt };
}
