import type { Cost } from "../../journal/cost.ts";
import type { CallKind, Entry, Head, Kept } from "../../journal/entries.ts";
import type { Deps } from "../../ports/deps.ts";
import type { Millis, Task } from "../../task/document.ts";

/** However long a journal is, a page of the dashboard reads its newest entries and so many pages before them. */
const MOST_PAGES = 2;

export interface Newest {
  readonly head: Head;
  readonly entries: readonly Entry[];
  /** How many older ones were not read. */
  readonly before: number;
}

/** The newest part of a task's journal; undefined where the journal was started again since, or belongs to an earlier task. */
export async function newestOf({ store }: Pick<Deps, "store">, task: Task): Promise<Newest | undefined> {
  const head = (await store.getHead(task.id))?.head;
  if (!head || head.born !== task.createdAt || head.epoch !== task.epoch) return undefined;
  const pages = await Promise.all(
    head.pages.slice(-MOST_PAGES).map(async (name) => {
      const text = await store.getPart(task.id, name);
      return text === undefined ? [] : (JSON.parse(text) as Entry[]);
    }),
  );
  const entries = [...pages.flat(), ...head.recent];
  return { head, entries, before: head.count - entries.length };
}

/** One call of the handler: begun, and perhaps ended. An effect that was tried again is one call per try. */
export interface Call {
  readonly n: number;
  readonly key: string;
  /** Unknown where its beginning was not read. */
  readonly kind: CallKind | "call";
  at: Millis | undefined;
  endedAt?: Millis | undefined;
  state: "done" | "open" | "unsure" | "undone";
  readonly until?: Millis | undefined;
  readonly reserved?: Cost | undefined;
  cost?: Cost | undefined;
  why?: string;
  kept?: Kept;
}

/** Entries as calls, in the order in which they began. */
export function callsOf({ entries, before }: Newest): Call[] {
  const calls: Call[] = [];
  const open = new Map<string, Call>();
  for (const [i, entry] of entries.entries()) {
    const { key, when } = entry;
    const n = before + i + 1;
    switch (entry.kind) {
      case "step":
        calls.push({ n, key, kind: "step", at: when, state: "done", kept: entry });
        break;
      case "intent": {
        const { until, reserved } = entry;
        const call: Call = { n, key, kind: entry.of, at: when, state: "open", until, reserved };
        calls.push(call);
        open.set(key, call);
        break;
      }
      case "receipt":
      case "undone":
      case "unsure": {
        const call = open.get(key) ?? { n, key, kind: "call", at: when, state: "open" };
        if (!open.delete(key)) calls.push(call);
        call.endedAt = when;
        call.state = entry.kind === "receipt" ? "done" : entry.kind;
        if (entry.kind !== "receipt") call.why = entry.why;
        else {
          call.cost = entry.cost;
          call.kept = entry;
        }
        break;
      }
      default:
        entry satisfies never;
    }
  }
  return calls;
}
