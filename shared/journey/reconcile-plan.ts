import type { QueueInfo } from "../ports/bus.ts";
import { showDuration } from "../task/duration.ts";
import { isPawlError, messageOf, PawlError } from "../task/errors.ts";
import { type Queue, queueNamed, streamName } from "../task/names.ts";
import { type Deps, uniqueToken } from "./deps.ts";
import { readCounts } from "./meter.ts";
import { type Ledger, type Mark, type Past, readLedger } from "./reports.ts";

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

/** Clocks of writers may be apart. */
const SLACK = 3_600_000;
const AT_ONCE = 16;

export async function planFrom(deps: Deps, ledger: Ledger): Promise<Plan> {
  const queues: PlannedQueue[] = [];
  const broken: BrokenQueue[] = [];
  const look = async (queue: Queue): Promise<void> => {
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
  };
  const all = await deps.bus.queues();
  // One by one, a thousand of them would take longer than a short invocation has.
  for (let i = 0; i < all.length; i += AT_ONCE) await Promise.all(all.slice(i, i + AT_ONCE).map(look));
  const byName = (a: { stream: string }, b: { stream: string }) => (a.stream < b.stream ? -1 : 1);
  queues.sort(byName);
  broken.sort(byName);
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
  checkKept(first, past, deps);
  return { ...plan, queues, from: first, at: end?.at ?? plan.at, since: begin ? begin.at - SLACK : 0 };
}

/** Without the documents of a time its sequences can't be explained any more; they were when it was. */
function checkKept(from: number, past: readonly Past[], { clock, settings }: Deps): void {
  const oldest = clock.now() - settings.retention;
  if (from >= oldest) return;
  const day = (at: number) => new Date(at).toISOString().slice(0, 16);
  const later = past.find(({ at }) => at >= oldest);
  const instead = later ? `. Begin at ${day(later.at)}Z or later` : "";
  throw new PawlError(
    "period_expired",
    `It would begin at ${day(from)}Z, and documents of tasks that ended before ${day(oldest)}Z are gone (PAWL_RETENTION is ${showDuration(settings.retention)})${instead}. \`pawl report --week\` shows what was found then`,
  );
}
