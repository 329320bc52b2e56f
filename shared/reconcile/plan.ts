import { inspectCalmly } from "../dispatch/queues.ts";
import { isPawlError, messageOf, PawlError } from "../errors/errors.ts";
import { readCounts } from "../meter/meter.ts";
import type { QueueInfo } from "../ports/bus.ts";
import { type Deps, uniqueToken } from "../ports/deps.ts";
import { CLOCK_IS_OFF, CLOCKS_AT_WORST } from "../settings/clocks.ts";
import { type Queue, queueNamed, streamName } from "../task/names.ts";
import { sayDuration, showDuration } from "../values/duration.ts";
import type { Remembered } from "./books/remembered.ts";
import { type OpenTasks, type Past, type QueueMark, readReportList } from "./books/reports.ts";
import type { Finding } from "./findings/findings.ts";

/** What one reconciliation looks at. Fixed when it begins: one that is killed and goes on makes the same report. */
export interface Plan {
  readonly run: string;
  readonly from: number;
  readonly at: number;
  /** What was lost before this was named the last time. */
  readonly since: number;
  /** No report was made before. */
  readonly isFirst?: boolean;
  /** A look back, which goes by the times that documents say: nothing is remembered of what was open then. */
  readonly isBack?: boolean;
  /** Where in the store's order of writes the documents begin that changed since the last time; none: all of them. */
  readonly after?: string;
  /** Where they ended when the plan was made: the next one begins there. */
  readonly position: string;
  /** Tasks that the last report left open. */
  readonly open?: OpenTasks;
  /** Documents that were written later have a seal. */
  readonly sealedSince?: number;
  /** What is wrong with what was remembered, and with clocks. */
  readonly findings: readonly Finding[];
  /** Clocks are apart: nothing is repaired. */
  readonly isClockOff?: boolean;
  readonly queues: readonly PlannedQueue[];
  readonly broken: readonly BrokenQueue[];
  /** Streams that are no more. None in plans of earlier versions. */
  readonly gone?: readonly GoneQueue[];
  /** Since when the server's words are captured, and since when they were the last time. */
  readonly advisories?: { readonly since?: number | undefined; readonly before?: number | undefined };
  /** All counters then. */
  readonly counts: Readonly<Record<string, number>>;
}

/** A queue that can't be looked at. */
export interface BrokenQueue {
  readonly stream: string;
  readonly agent: string;
  readonly why: string;
  readonly before?: QueueMark;
}

export interface GoneQueue {
  readonly stream: string;
  readonly agent: string;
  readonly before: QueueMark;
}

export interface PlannedQueue {
  readonly queue: Queue;
  readonly stream: string;
  readonly info: QueueInfo;
  readonly before?: QueueMark;
}

const AT_ONCE = 16;

/** `isWhole`: all documents are read, also those that nobody wrote since the last time. */
export async function planFrom(deps: Deps, { ledger, findings }: Remembered, isWhole = false): Promise<Plan> {
  const { cursor: position, now: storeNow } = await deps.store.position();
  const storeAhead = storeNow - deps.clock.now();
  let natsAhead = 0;
  const queues: PlannedQueue[] = [];
  const broken: BrokenQueue[] = [];
  const look = async (queue: Queue): Promise<void> => {
    const stream = streamName(queue);
    const before = ledger.marks[stream];
    try {
      const info = await inspectCalmly(deps, queue);
      natsAhead = info.now - deps.clock.now();
      queues.push({ queue, stream, info, ...(before && { before }) });
    } catch (error) {
      // What it says of itself next week is not lost: its mark stays.
      if (!isPawlError(error, "queue_gone") && !isPawlError(error, "bus_refused")) throw error;
      broken.push({ stream, agent: queue.agent, why: messageOf(error), ...(before && { before }) });
    }
  };
  const all = await deps.bus.queues();
  // One by one, a thousand of them would take longer than a short invocation has.
  for (let i = 0; i < all.length; i += AT_ONCE) await Promise.all(all.slice(i, i + AT_ONCE).map(look));
  const byName = (a: { stream: string }, b: { stream: string }) => (a.stream < b.stream ? -1 : 1);
  queues.sort(byName);
  // Deleted meanwhile, it is one of those that went.
  const left = new Set(broken.length > 0 ? (await deps.bus.queues()).map(streamName) : []);
  const unseen = broken.filter(({ stream }) => left.has(stream)).sort(byName);
  const known = new Set([...queues, ...unseen].map(({ stream }) => stream));
  const gone = Object.entries(ledger.marks).flatMap(([stream, before]) => {
    const agent = queueNamed(stream, deps.settings.namespace)?.agent ?? "";
    return known.has(stream) ? [] : [{ stream, agent, before }];
  });
  const advisories = { since: await deps.bus.advisoriesSince(), before: ledger.advisoriesSince };
  const clocks = clockFindings({ NATS: natsAhead, [deps.store.name]: storeAhead });
  const isClockOff = clocks.length > 0;
  const at = deps.clock.now() + (isClockOff ? storeAhead : 0);
  const from = ledger.at ?? Math.min(at, ...queues.map(({ info }) => info.createdAt)) - 1;
  const since = ledger.at === undefined ? 0 : ledger.at - CLOCKS_AT_WORST;
  const counts = await readCounts(deps.store);
  return {
    run: uniqueToken(),
    from,
    at,
    since,
    isFirst: ledger.at === undefined,
    ...(ledger.position !== undefined && !isWhole && { after: ledger.position }),
    position,
    ...(ledger.open && { open: ledger.open }),
    ...(ledger.sealedSince !== undefined && { sealedSince: ledger.sealedSince }),
    findings: [...findings, ...clocks],
    ...(isClockOff && { isClockOff }),
    queues,
    broken: unseen,
    gone,
    advisories,
    counts,
  };
}

function clockFindings(ahead: Readonly<Record<string, number>>): Finding[] {
  const isOff = Object.values(ahead).some((ms) => Math.abs(ms) > CLOCK_IS_OFF);
  if (!isOff) return [];
  const said = Object.entries(ahead).map(
    ([who, ms]) => `${who} is ${sayDuration(Math.abs(ms))} ${ms < 0 ? "behind" : "ahead of"} this machine`,
  );
  return [{ kind: "clock_off", subject: "clocks", agent: "", detail: said.join("; ") }];
}

/** The same period again, between two earlier reconciliations: the last one before `from`, the first one after `to`. */
export async function planBetween(deps: Deps, from: number, to: number): Promise<Plan> {
  const ledger = await readReportList(deps.store);
  const { past = [] } = ledger;
  const begin = past.findLast(({ at }) => at <= from);
  const end = past.find(({ at }) => at >= to);
  const { open: _, after: __, ...plan } = await planFrom(deps, { ledger, findings: [] });
  const queues = plan.queues.map(({ queue, stream, info }): PlannedQueue => {
    const lastSeq = Math.min(info.lastSeq, end?.upTo[stream] ?? info.lastSeq);
    const upTo = Math.min(lastSeq, begin?.upTo[stream] ?? 0);
    const { createdAt, consumer } = info;
    const before: QueueMark = { createdAt, consumerCreatedAt: consumer?.createdAt ?? 0, upTo, open: [] };
    return { queue, stream, info: { ...info, lastSeq }, before };
  });
  const first = begin?.at ?? Math.min(plan.at, ...queues.map(({ info }) => info.createdAt)) - 1;
  checkKept(deps, first, past);
  const since = begin ? begin.at - CLOCKS_AT_WORST : 0;
  // What was open the last time is no part of an earlier period.
  return { ...plan, isBack: true, queues, gone: [], from: first, at: end?.at ?? plan.at, since };
}

/** Without the documents of a time its sequences can't be explained any more; they were when it was. */
function checkKept({ clock, settings }: Deps, from: number, past: readonly Past[]): void {
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
