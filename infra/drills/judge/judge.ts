import { isFinal } from "../../../shared/task/table.ts";
import type { PromiseName } from "../facts.ts";
import { promises } from "../facts.ts";
import { effects, repeated } from "./again.ts";
import type { Broken } from "./broken.ts";
import type { Evidence } from "./evidence.ts";
import { overlapped, staleWords } from "./overlap.ts";

export interface Judgement {
  readonly promises: readonly { readonly promise: PromiseName; readonly holds: boolean }[];
  readonly broken: readonly Broken[];
}

/** One judge for all drills: what was seen outside of Pawl, against what Pawl says. */
export function judge(evidence: Evidence): Judgement {
  const broken = [
    ...evidence.claims.flatMap(({ broken: promise, why }) => (promise ? [{ promise, detail: why }] : [])),
    ...oneResult(evidence),
    ...overlapped(evidence),
    ...staleWords(evidence),
    ...repeated(evidence),
    ...effects(evidence),
    ...overspent(evidence),
    ...lost(evidence),
    ...ackedFirst(evidence),
    ...unexplained(evidence),
  ];
  const names = Object.keys(promises) as PromiseName[];
  const holds = (promise: PromiseName) => !broken.some((one) => one.promise === promise);
  return { promises: names.map((promise) => ({ promise, holds: holds(promise) })), broken };
}

const FINAL = new Set(["complete", "fail", "exhaust", "cancel"]);

/** Ended once, or once more after each redrive; and the result is what an execution returned that ended. */
function oneResult({ stored, deeds }: Evidence): Broken[] {
  const wrong = (detail: string): Broken => ({ promise: "one result", detail });
  return [...stored.values()].flatMap(({ task }) => {
    const ends = task.history.filter(({ event }) => FINAL.has(event)).length;
    const again = task.history.filter(({ event }) => event === "redrive").length;
    const found = ends > again + 1 ? [wrong(`${task.id} ended ${ends} times`)] : [];
    if (task.state !== "completed") return found;
    const by = (task.result as { by?: string } | null)?.by;
    const returned = deeds.some(({ id, run, what }) => id === task.id && run === by && what === "end");
    return returned ? found : [...found, wrong(`${task.id} has a result that no execution returned: ${by}`)];
  });
}

/** What was accepted is where it has to end. A dead letter says why, and keeps its input. */
function lost({ given, stored, queues }: Evidence): Broken[] {
  const wrong = (detail: string): Broken => ({ promise: "nothing lost", detail });
  const tasks = given.flatMap(({ id, ends }) => {
    const task = stored.get(id)?.task;
    if (!task) return [wrong(`${id} was accepted, and there is no document of it`)];
    const why = task.state === "failed" ? ` (${task.error.code}: ${task.error.message})` : "";
    if (task.state === ends) return [];
    const how = isFinal(task) ? "ended as" : "is left";
    return [wrong(`${id} ${how} ${task.state}${why}, and should be ${ends}`)];
  });
  const left = queues.flatMap(({ stream, left }) =>
    left > 0 ? [wrong(`${stream} still has ${left} message${left > 1 ? "s" : ""}`)] : [],
  );
  return [...tasks, ...left];
}

/** By the clocks of one machine: an ack that was heard before its document says that the sequence was settled. */
function ackedFirst({ words, stored, settled: counted }: Evidence): Broken[] {
  const settledAt = new Map<string, number>();
  for (const { task } of stored.values())
    for (const { queue, seq, at } of task.settled) settledAt.set(`${queue} ${seq}`, at);
  const first = new Map<string, number>();
  for (const { word, queue, seq, at } of words)
    if (word === "+ACK" && !first.has(`${queue} ${seq}`)) first.set(`${queue} ${seq}`, at);
  return [...first].flatMap(([sequence, at]): Broken[] => {
    const settled = settledAt.get(sequence);
    if (settled === undefined && !counted.has(sequence))
      return [
        {
          promise: "nothing lost",
          detail: `sequence ${sequence} was acked, and no document says what became of it`,
        },
      ];
    if (settled === undefined || settled <= at) return [];
    const detail = `sequence ${sequence} was acked ${settled - at} ms before a document said what became of it: a crash in between would have lost it`;
    return [{ promise: "nothing lost", detail }];
  });
}

/** A lost answer is paid too: the budget counts it at the most that it could have cost. */
function overspent({ paid, budgets }: Evidence): Broken[] {
  return [...budgets].flatMap(([id, most]): Broken[] => {
    const usd = paid.get(id) ?? 0;
    if (usd <= most) return [];
    const detail = `${id} has cost $${usd.toFixed(4)} at its model, and may cost $${most}: turns that a crash cut off were paid again`;
    return [{ promise: "never repeated", detail }];
  });
}

/** By the reconciliation's own word, and by our own count beside it. */
function unexplained({ reconciled, queues, settled }: Evidence): Broken[] {
  const wrong = (detail: string): Broken => ({ promise: "explained", detail });
  const said = reconciled.ok ? [] : [wrong(`the reconciliation says: ${reconciled.line}`)];
  const counted = queues.flatMap(({ stream, lastSeq, left }) => {
    const odd: string[] = [];
    for (let seq = 1; seq <= lastSeq; seq++) {
      const times = settled.get(`${stream} ${seq}`) ?? 0;
      if (times !== 1) odd.push(`${seq} by ${times}`);
    }
    return odd.length > left
      ? [wrong(`${stream}: sequences settled by not one document: ${odd.join(", ")}`)]
      : [];
  });
  return [...said, ...counted];
}
