import { isPawlError } from "../../errors/errors.ts";
import type { QueueInfo } from "../../ports/bus.ts";
import type { Deps } from "../../ports/deps.ts";
import { type QueueFieldName, queueFields } from "../../ports/queue-fields.ts";
import { ONE_ENDING } from "../../settings/clocks.ts";
import { redeliveryHorizon, type Settings, SHORTEST_RETENTION } from "../../settings/settings.ts";
import type { Queue } from "../../task/names.ts";
import { showDuration } from "../../values/duration.ts";
import type { Account } from "../account.ts";
import { isRewound } from "../books/books.ts";
import { countOf, showRanges } from "../books/sequences.ts";
import type { Checked, QueueReport } from "../figures/report.ts";
import { added, type Counting, NO_TALLY, type Tally } from "../figures/tally.ts";
import type { PlannedQueue } from "../plan.ts";
import type { Finding, FindingName } from "./findings.ts";
import { goneFindings } from "./gone.ts";
import { pausedFindings } from "./paused.ts";

/** What the streams and consumers say, against what the documents say. */
export async function queueFindings(deps: Deps, account: Account): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const planned of account.plan.queues) {
    const { queue, stream, info, before } = planned;
    const { agent } = queue;
    const find = (kind: FindingName, detail: string, subject = stream, amount?: number) =>
      findings.push({ kind, subject, agent, detail, ...(amount && { amount }) });
    const book = account.books.get(stream);
    const unexplained = book?.ranges("unexplained") ?? [];
    if (unexplained.length > 0)
      find(
        "unexplained",
        `sequences ${showRanges(unexplained)}`,
        `${stream}#${unexplained[0]?.[0]}`,
        countOf(unexplained),
      );
    const settled = account.maxSettled[stream] ?? 0;
    // That it was gone, an earlier report has said.
    if (before && isRewound(info, before) && before.goneSince === undefined)
      find(
        "stream_rewound",
        `it has ${info.lastSeq} sequences, and had ${before.upTo}; made ${iso(info.createdAt)}`,
      );
    // Settled while this ran, it may be newer than what was seen of the stream at first.
    else if (settled > info.lastSeq && settled > ((await infoNow(deps, queue))?.lastSeq ?? 0))
      find("stream_rewound", `documents settled its sequence ${settled}, and it has ${info.lastSeq}`);
    for (const finding of givenTwice(account, planned)) findings.push(finding);
    const stranded = info.messages - info.pending - info.inFlight;
    if (stranded > 0)
      find("stranded", `${stranded} of its ${info.messages} messages are neither pending nor in flight`);
    for (const { kind, detail, what } of [
      ...(await placeFindings(deps, planned)),
      ...definitionFindings(deps, planned),
    ])
      find(kind, detail, what === undefined ? stream : `${stream} ${what}`);
  }
  for (const { stream, agent, why } of account.plan.broken)
    findings.push({ kind: "queue_unseen", subject: stream, agent, detail: why });
  return [...findings, ...(await goneFindings(deps, account)), ...(await pausedFindings(deps, account))];
}

/** So many numbers of one stream that two documents settled are no mistake of one of them. */
const MANY = 3;

/** Sequences that two documents settled; or a stream that gave its numbers out once more. */
function givenTwice({ twice }: Account, { queue, stream }: PlannedQueue): Finding[] {
  const { agent } = queue;
  const own = twice.filter((one) => one.stream === stream);
  if (own.length < MANY)
    return own.map(({ task, seq }) => ({
      kind: "settled_twice",
      subject: task,
      agent,
      detail: `sequence ${seq} of ${stream} is settled by another document too`,
    }));
  const seqs = [...new Set(own.map(({ seq }) => seq))].sort((a, b) => a - b);
  const detail = `sequences ${showRanges(seqs.map((seq) => [seq, seq]))} were given out twice: it was restored from a backup`;
  return [{ kind: "stream_rewound", subject: stream, agent, detail }];
}

interface FoundQueue {
  readonly kind: FindingName;
  readonly detail: string;
  /** The field that it is about. */
  readonly what?: string;
}

/** A lane that its agent no longer has. */
function isLeftLane({ settings, lanesOf }: Deps, { agent, lane, generation }: Queue): boolean {
  return generation === settings.generation && lane >= (lanesOf?.(agent) ?? Infinity);
}

/**
 * Queues that are not among those that are published to now. What they held when the plan was made may be done: lanes and
 * generations are today's, and a plan that was cut off may be older than they are.
 */
async function placeFindings(deps: Deps, { queue, info }: PlannedQueue): Promise<FoundQueue[]> {
  const { generation } = deps.settings;
  const isElsewhere = queue.generation !== generation || isLeftLane(deps, queue);
  const messages =
    isElsewhere && info.messages > 0 ? ((await infoNow(deps, queue))?.messages ?? 0) : info.messages;
  const said = `${messages} messages are left in generation ${queue.generation}`;
  if (queue.generation > generation)
    return messages > 0
      ? [{ kind: "generation_lowered", detail: `${said}, and PAWL_GENERATION is ${generation}` }]
      : [{ kind: "generation_ahead", detail: `PAWL_GENERATION is ${generation}` }];
  if (messages === 0) return [];
  if (queue.generation < generation) return [{ kind: "old_generation", detail: said }];
  if (!isLeftLane(deps, queue)) return [];
  const lanes = deps.lanesOf?.(queue.agent);
  return [
    { kind: "lane_left", detail: `${messages} messages are left, and ${queue.agent} has ${lanes} lanes` },
  ];
}

/** How its stream and consumer are defined. Of one that is empty and gets no more it does not matter. */
function definitionFindings(deps: Deps, { queue, info, before }: PlannedQueue): FoundQueue[] {
  const isRetired = queue.generation < deps.settings.generation || isLeftLane(deps, queue);
  if (isRetired && info.messages === 0) return [];
  const { consumer } = info;
  const { createdAt, pausedUntil } = consumer ?? {};
  return [
    ...(createdAt === undefined ? [{ kind: "consumer_gone", detail: "it has no consumer" } as const] : []),
    ...(createdAt !== undefined && before && !before.goneSince && before.consumerCreatedAt !== createdAt
      ? [{ kind: "consumer_recreated", detail: `made anew at ${iso(createdAt)}` } as const]
      : []),
    ...(pausedUntil !== undefined
      ? [{ kind: "consumer_paused", detail: `until ${iso(pausedUntil)}` } as const]
      : []),
    ...differencesOf(info).map(({ field, is, should, isUnsafe }): FoundQueue => {
      const kind = field === "pawl-store" ? "stores_differ" : isUnsafe ? "queue_unsafe" : "queue_differs";
      const { cost } = queueFields[field];
      return { kind, what: field, detail: `${field} is ${is} and should be ${should}. ${cost}` };
    }),
  ];
}

/** None where the stream is gone by now. */
async function infoNow({ bus }: Deps, queue: Queue): Promise<QueueInfo | undefined> {
  try {
    return await bus.inspect(queue);
  } catch (error) {
    if (isPawlError(error, "queue_gone")) return undefined;
    throw error;
  }
}

const iso = (at: number) => new Date(at).toISOString();

/** A plan that an earlier version made has none. */
const differencesOf = ({ differences = [] }: Partial<QueueInfo>) => differences;

/** What is as it was set, of the settings that matter most, and everything that is not. */
export function checksOf({ info }: PlannedQueue, settings: Settings): Checked[] {
  const wrong = differencesOf(info).map(({ field, is, should }) => ({ what: field, is, should, ok: false }));
  const set: readonly (readonly [QueueFieldName, string])[] = [
    ["ack_wait", showDuration(settings.ackWait)],
    ["duplicate_window", showDuration(settings.duplicateWindow)],
    ["max_deliver", String(settings.maxDeliver)],
  ];
  const isThere = (what: QueueFieldName) => queueFields[what].of === "stream" || info.consumer !== undefined;
  const right = set
    .filter(([what]) => isThere(what) && !wrong.some((one) => one.what === what))
    .map(([what, should]) => ({ what, is: should, should, ok: true }));
  return [...right, ...wrong];
}

/** Effective settings of all queues: those that agree in one line. */
export function checkedSettings(account: Account, settings: Settings): Checked[] {
  const all = account.plan.queues.flatMap((planned) =>
    checksOf(planned, settings).map((one) =>
      one.ok ? one : { ...one, what: `${one.what} of ${planned.stream}` },
    ),
  );
  const shown = [...all, checkedRetention(settings, account.shortestKept)];
  return shown.filter((one, i) => shown.findIndex((other) => other.what === one.what) === i);
}

/** Of this deployment's setting, and of what the documents say that others wrote: whichever is shorter. */
function checkedRetention(settings: Settings, shortestKept = Infinity): Checked {
  const shortest = Math.max(redeliveryHorizon(settings), SHORTEST_RETENTION);
  // A document's end is a moment after its last message was settled.
  const kept = Math.min(settings.retention, shortestKept + ONE_ENDING);
  return {
    what: "retention",
    is: showDuration(kept < settings.retention ? Math.max(0, kept - (kept % 1_000)) : settings.retention),
    should: `${showDuration(shortest)} or more`,
    ok: kept >= shortest,
  };
}

export function queueReports(account: Account): QueueReport[] {
  return account.plan.queues.map(({ queue, stream, info }) => ({
    stream,
    agent: queue.agent,
    lastSeq: info.lastSeq,
    messages: info.messages,
    pending: info.pending,
    inFlight: info.inFlight,
    delivered: info.consumer?.delivered ?? 0,
    ackFloor: info.consumer?.ackFloor ?? 0,
    classes: account.books.get(stream)?.counts() ?? NO_TALLY.classes,
  }));
}

/** What documents say of each agent, with what became of its queues' sequences. */
export function agentTallies(account: Account): Record<string, Tally> {
  const tallies: Record<string, Tally> = structuredClone(account.tallies) as Record<string, Counting>;
  const { queues, gone = [] } = account.plan;
  const all = [...queues.map(({ queue, stream }) => ({ stream, agent: queue.agent })), ...gone];
  for (const { stream, agent } of all) {
    const book = account.books.get(stream);
    if (!book) continue;
    const carriedOver = book.size - (book.period.upTo - book.period.after);
    const sequences: Tally = { ...NO_TALLY, classes: book.counts(), carriedOver };
    tallies[agent] = added(tallies[agent] ?? NO_TALLY, sequences);
  }
  return Object.fromEntries(Object.entries(tallies).sort(([a], [b]) => (a < b ? -1 : 1)));
}
