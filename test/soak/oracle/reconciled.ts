import { setTimeout as sleep } from "node:timers/promises";
import type { Wired } from "../../../functions/wiring/wire.node.ts";
import { queueOf } from "../../../shared/dispatch/dispatch.ts";
import { verdictOf } from "../../../shared/reconcile/figures/report.ts";
import type { FindingName } from "../../../shared/reconcile/findings/findings.ts";
import { writers } from "../../../shared/reconcile/page/writers.ts";
import { reconcile } from "../../../shared/reconcile/reconcile.ts";
import { streamName } from "../../../shared/task/names.ts";
import { patiently } from "../../support/time/until.ts";
import { AGENT, LANES } from "../work.ts";
import type { StoredTask } from "./stored.ts";

/** Findings that a soak may have, because a fault of ours really did that. Anything else is a false alarm. */
export const legitimate: Partial<Record<FindingName, string>> = {};

export interface Explained {
  readonly sequences: number;
  /** By the report, or by our own count of what the documents have settled: whichever is more. */
  readonly unexplained: number;
  readonly falseAlarms: readonly string[];
  readonly legitimate: readonly string[];
  /** Messages that are still in the streams. */
  readonly leftInQueues: number;
}

/** How often somebody reconciles in the middle of it all, as an operator may at any time. */
const EVERY = 30_000;

/** How many reconciliations came to their end under faults, and how many were cut off. */
export interface Beside {
  done: number;
  cut: number;
}

/**
 * Reconciles and repairs while everything is disturbed. What it finds standing is right at that moment: a runner has just
 * been killed. What it says has happened stays in the report of the week, where the last reconciliation shows it.
 */
export async function reconcileBeside(wired: () => Promise<Wired>, stop: AbortSignal): Promise<Beside> {
  const beside: Beside = { done: 0, cut: 0 };
  for (;;) {
    await sleep(EVERY, undefined, { signal: stop }).catch(() => {});
    if (stop.aborted) return beside;
    try {
      await using deps = await wired();
      const done = await reconcile(deps, stop, { repair: true, writers, lanes: { [AGENT]: LANES } });
      beside[done ? "done" : "cut"]++;
    } catch {
      // A server was away for too long: the next one goes on.
      beside.cut++;
    }
  }
}

/** Two reconciliations, and our own count beside them. */
export async function explain(
  deps: Wired,
  stored: ReadonlyMap<string, StoredTask>,
  stop: AbortSignal,
): Promise<Explained> {
  const lanes = { [AGENT]: LANES };
  const found: { kind: FindingName; text: string }[] = [];
  let unexplained = 0;
  let sequences = 0;
  // One that was cut off is finished as of then.
  await reconcile(deps, stop, { repair: false, writers, lanes });
  for (const turn of ["first", "second"]) {
    const done = await reconcile(deps, stop, { repair: false, writers, lanes, isWhole: turn === "second" });
    if (!done) throw new Error("The reconciliation was stopped");
    const { findings } = done.report;
    for (const { kind, subject, detail } of findings.named)
      found.push({ kind, text: `${turn}: ${kind} ${subject} (${detail})` });
    const verdict = verdictOf(done.report);
    unexplained = Math.max(unexplained, verdict.unexplained);
    sequences = verdict.sequences;
  }
  const own = await countOurselves(deps, stored);
  const isLegitimate = ({ kind }: { kind: FindingName }) => legitimate[kind] !== undefined;
  return {
    sequences,
    unexplained: Math.max(unexplained, own.unsettled),
    falseAlarms: found.filter((one) => !isLegitimate(one)).map(({ text }) => text),
    legitimate: found.filter(isLegitimate).map(({ text }) => text),
    leftInQueues: own.left,
  };
}

/** Every sequence that a stream gave out must be settled by exactly one document, or lie in the stream. */
async function countOurselves(
  deps: Wired,
  stored: ReadonlyMap<string, StoredTask>,
): Promise<{ unsettled: number; left: number }> {
  const settled = new Map<string, number>();
  for (const task of stored.values())
    for (const { queue, seq } of task.settled)
      settled.set(`${queue} ${seq}`, (settled.get(`${queue} ${seq}`) ?? 0) + 1);
  let unsettled = 0;
  let left = 0;
  for (let lane = 0; lane < LANES; lane++) {
    const queue = queueOf(deps, { agent: AGENT, lane });
    const { lastSeq } = await patiently(() => deps.bus.inspect(queue));
    const { pending, inFlight } = await patiently(() => deps.bus.state(queue));
    left += pending + inFlight;
    for (let seq = 1; seq <= lastSeq; seq++)
      if (settled.get(`${streamName(queue)} ${seq}`) !== 1) unsettled++;
  }
  return { unsettled: Math.max(0, unsettled - left), left };
}
