import type { QueueInfo } from "../ports/bus.ts";
import type { Settlement } from "../task/document.ts";
import { isPawlError, messageOf } from "../task/errors.ts";
import type { Findings } from "../task/findings.ts";
import { type Queue, queueNamed, streamName } from "../task/names.ts";
import type { Live } from "../task/report.ts";
import type { Counting } from "../task/tally.ts";
import { type Deps, uniqueToken } from "./deps.ts";
import { readCounts } from "./meter.ts";
import { type Ledger, type Mark, readLedger } from "./reports.ts";

/** What one reconciliation looks at. Fixed when it begins: one that is killed and goes on makes the same report. */
export interface Plan {
  readonly run: string;
  readonly from: number;
  readonly at: number;
  /** Documents that changed before this were looked at the last time. */
  readonly since: number;
  readonly queues: readonly PlannedQueue[];
  readonly broken: readonly BrokenQueue[];
  /** All counters then. */
  readonly counts: Readonly<Record<string, number>>;
}

/** One that can't be looked at. */
export interface BrokenQueue {
  readonly stream: string;
  readonly agent: string;
  readonly why: string;
  readonly isGone?: boolean;
  readonly before?: Mark;
}

export interface PlannedQueue {
  readonly queue: Queue;
  readonly stream: string;
  readonly info: QueueInfo;
  readonly before?: Mark;
}

export interface Lagging extends Settlement {
  readonly task: string;
}

/** Where a reconciliation is. */
export interface Progress {
  readonly plan: Plan;
  /** Documents up to here were looked at; none: it has not begun with them. */
  readonly cursor?: string;
  readonly stage: "documents" | "live" | "done";
  readonly tallies: Record<string, Counting>;
  readonly findings: Findings;
  /** Per queue, the names of the parts that keep its book. */
  readonly books: Record<string, readonly string[]>;
  readonly maxSettled: Record<string, number>;
  /** Tasks that are not over, by agent and state. */
  readonly live: Live;
  /** Settled messages that are still in their streams. */
  readonly lagging: readonly Lagging[];
  readonly documents: number;
}

export const NOTHING_YET = {
  tallies: {},
  findings: { counts: {}, named: [] },
  maxSettled: {},
  lagging: [],
  live: {},
  documents: 0,
} as const;

const PROGRESS = "reconcile-progress";
/** Clocks of writers may be apart. */
const SLACK = 3_600_000;

/** The plan of one that was cut off, or a new one. */
export async function planOrResume(
  deps: Deps,
): Promise<{ progress: Progress; revision: string | undefined; isResumed: boolean }> {
  const ledger = await readLedger(deps.store);
  const kept = await deps.store.getRecord(PROGRESS);
  const left = kept && (JSON.parse(kept.text) as Progress);
  // One of before the last report has nothing left to say.
  if (kept && left && left.plan.at > (ledger.at ?? 0))
    return { progress: left, revision: kept.revision, isResumed: true };
  const plan = await planFrom(deps, ledger);
  const progress: Progress = {
    plan,
    stage: "documents",
    books: {},
    ...NOTHING_YET,
  };
  const written = await deps.store.putRecord(PROGRESS, JSON.stringify(progress), kept?.revision);
  // Another one has begun at the same moment: its plan is as good.
  if (written.kind === "refused") return planOrResume(deps);
  return { progress, revision: written.revision, isResumed: false };
}

async function planFrom(deps: Deps, ledger: Ledger): Promise<Plan> {
  const queues: PlannedQueue[] = [];
  const broken: BrokenQueue[] = [];
  for (const queue of await deps.bus.queues()) {
    const stream = streamName(queue);
    const before = ledger.marks[stream];
    try {
      const info = await deps.bus.inspect(queue);
      queues.push({ queue, stream, info, ...(before && { before }) });
    } catch (error) {
      // Its consumer is gone. What it says of itself next week is not lost: its mark stays.
      if (!isPawlError(error, "bus_refused")) throw error;
      broken.push({ stream, agent: queue.agent, why: messageOf(error), ...(before && { before }) });
    }
  }
  for (const [stream, before] of Object.entries(ledger.marks)) {
    const isKnown =
      queues.some((one) => one.stream === stream) || broken.some((one) => one.stream === stream);
    const agent = queueNamed(stream, deps.settings.namespace)?.agent ?? "";
    // A queue that was drained and retired left nothing open.
    if (!isKnown && before.open.length > 0)
      broken.push({ stream, agent, why: "the stream is gone", isGone: true });
  }
  const at = deps.clock.now();
  const from = ledger.at ?? Math.min(at, ...queues.map(({ info }) => info.createdAt)) - 1;
  const since = ledger.at === undefined ? 0 : ledger.at - SLACK;
  return { run: uniqueToken(), from, at, since, queues, broken, counts: await readCounts(deps.store) };
}

/** The same period again, between two earlier reconciliations: the last one before `from`, the first one after `to`. */
export async function planBetween(deps: Deps, from: number, to: number): Promise<Plan> {
  const ledger = await readLedger(deps.store);
  const { past = [] } = ledger;
  const begin = past.findLast(({ at }) => at <= from);
  const end = past.find(({ at }) => at >= to);
  const plan = await planFrom(deps, ledger);
  const queues = plan.queues.map(({ queue, stream, info }): PlannedQueue => {
    const lastSeq = Math.min(info.lastSeq, end?.upTo[stream] ?? info.lastSeq);
    const upTo = Math.min(lastSeq, begin?.upTo[stream] ?? 0);
    const { createdAt, consumer } = info;
    const before: Mark = { createdAt, consumerCreatedAt: consumer.createdAt, upTo, open: [] };
    return { queue, stream, info: { ...info, lastSeq }, before };
  });
  const first = begin?.at ?? Math.min(plan.at, ...queues.map(({ info }) => info.createdAt)) - 1;
  return { ...plan, queues, from: first, at: end?.at ?? plan.at, since: begin ? begin.at - SLACK : 0 };
}

/** Undefined when another reconciliation has gone on from the same place. */
export async function keepProgress(
  deps: Deps,
  progress: Progress,
  revision: string | undefined,
): Promise<string | undefined> {
  const written = await deps.store.putRecord(PROGRESS, JSON.stringify(progress), revision);
  return written.kind === "written" ? written.revision : undefined;
}
