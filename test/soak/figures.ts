import { executions } from "../../infra/drills/outside/executions.ts";
import type { LocalModel } from "../../infra/local/model.ts";
import type { Deed } from "./deeds.ts";
import { TURN_TOKENS } from "./work.ts";

/** From the last sign of an execution that was cut off to the start of the next. */
export interface Recovery {
  readonly ms: number;
  readonly id: string;
  readonly from: number;
}

/** The longest of all. Doubts wait for a person. */
export function longestRecovery(deeds: readonly Deed[], inDoubt: ReadonlySet<string>): Recovery {
  const ended = new Set(deeds.filter(({ what }) => what === "end").map(({ run }) => run));
  const byTask = Map.groupBy(executions(deeds), ({ id }) => id);
  let longest: Recovery = { ms: 0, id: "none", from: 0 };
  for (const [id, list] of byTask) {
    if (inDoubt.has(id) || list.length < 2) continue;
    const sorted = list.toSorted((a, b) => a.start - b.start);
    for (const [i, one] of sorted.entries()) {
      const next = sorted[i + 1];
      if (!next || ended.has(one.notes[0]?.run ?? "")) continue;
      const ms = next.start - one.end;
      if (ms > longest.ms) longest = { ms, id, from: one.end };
    }
  }
  return longest;
}

/** What was paid for answers that nobody stored: one answer of each turn is worth its money. */
export function respentTokens(deeds: readonly Deed[], { requests }: Pick<LocalModel, "requests">): number {
  const answered = deeds.filter(({ request }) => request !== undefined && requests[request]?.done);
  const worth = new Set(answered.map(({ id, deed }) => `${id} ${deed}`));
  return (answered.length - worth.size) * (TURN_TOKENS.input_tokens + TURN_TOKENS.output_tokens);
}

/** How many executions were begun beyond one a task. */
export function restarts(deeds: readonly Deed[]): number {
  const starts = deeds.filter(({ what }) => what === "start");
  return starts.length - new Set(starts.map(({ id }) => id)).size;
}
