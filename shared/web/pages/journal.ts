import type { Asked } from "../../journal/asked.ts";
import type { Cost } from "../../journal/cost.ts";
import type { CallKind, Kept, Range } from "../../journal/entries.ts";
import type { Newest } from "../../journal/newest.ts";
import type { Millis } from "../../task/document.ts";

/** One call of the handler: begun, and perhaps ended. An effect that was tried again is one call per try. */
export interface Call {
  readonly n: number;
  readonly key: string;
  /** Unknown where its beginning was not read. */
  readonly kind: CallKind | "call";
  /** When it began. Of a step, which is stored when it is over, that follows from how long it took; older ones don't say. */
  at: Millis | undefined;
  endedAt?: Millis | undefined;
  /** "forgotten": a redrive has it done again. */
  state: "done" | "open" | "unsure" | "undone" | "forgotten";
  readonly until?: Millis | undefined;
  readonly reserved?: Cost | undefined;
  cost?: Cost | undefined;
  why?: string;
  kept?: Kept;
  readonly asked?: Asked | undefined;
}

/** Every try of the calls that begin there. */
function forget(calls: readonly Call[], forgets: readonly Range[]): void {
  const isIn = (at: number) => forgets.some(([first, last]) => at >= first && at <= last);
  const keys = new Set(calls.flatMap(({ n, key, kind }) => (kind !== "effect" && isIn(n - 1) ? [key] : [])));
  for (const call of calls) if (keys.has(call.key)) call.state = "forgotten";
}

/** Entries as calls, in the order in which they began. */
export function callsOf({ entries, before }: Newest): Call[] {
  const calls: Call[] = [];
  const open = new Map<string, Call>();
  for (const [i, entry] of entries.entries()) {
    const { key, when } = entry;
    const n = before + i + 1;
    switch (entry.kind) {
      case "step": {
        const { took, asked } = entry;
        const at = when !== undefined && took !== undefined ? when - took : undefined;
        calls.push({ n, key, kind: "step", at, endedAt: when, state: "done", kept: entry, asked });
        break;
      }
      case "intent": {
        const { until, reserved, asked } = entry;
        const call: Call = { n, key, kind: entry.of, at: when, state: "open", until, reserved, asked };
        calls.push(call);
        open.set(key, call);
        break;
      }
      case "receipt":
      case "undone":
      case "unsure": {
        const call = open.get(key) ?? { n, key, kind: "call", at: undefined, state: "open" };
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
      case "redriven":
        forget(calls, entry.forgets);
        break;
      default:
        entry satisfies never;
    }
  }
  return calls;
}
