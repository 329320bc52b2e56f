import { showDuration } from "../task/duration.ts";
import { isPawlError } from "../task/errors.ts";
import type { Finding, FindingName } from "../task/findings.ts";
import type { Queue } from "../task/names.ts";
import type { Checked, QueueReport } from "../task/report.ts";
import { showRanges } from "../task/sequences.ts";
import { redeliveryHorizon, type Settings, SHORTEST_RETENTION } from "../task/settings.ts";
import { added, type Counting, NO_TALLY, type Tally } from "../task/tally.ts";
import type { Deps } from "./deps.ts";
import type { Account } from "./reconcile-account.ts";
import { isRewound } from "./reconcile-books.ts";
import type { PlannedQueue } from "./reconcile-plan.ts";

/** What the streams and consumers say, against what the documents say. */
export async function queueFindings(deps: Deps, account: Account): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const planned of account.plan.queues) {
    const { queue, stream, info, before } = planned;
    const { agent } = queue;
    const find = (kind: FindingName, detail: string, subject = stream) =>
      findings.push({ kind, subject, agent, detail });
    const book = account.books.get(stream);
    const unexplained = book?.ranges("unexplained") ?? [];
    if (unexplained.length > 0)
      find("unexplained", `sequences ${showRanges(unexplained)}`, `${stream}#${unexplained[0]?.[0]}`);
    const settled = account.maxSettled[stream] ?? 0;
    if (before && isRewound(info, before))
      find(
        "stream_rewound",
        `it has ${info.lastSeq} sequences, and had ${before.upTo}; made ${iso(info.createdAt)}`,
      );
    // Settled while this ran, it may be newer than what was seen of the stream at first.
    else if (settled > info.lastSeq && settled > (await lastSeqNow(deps, queue)))
      find("stream_rewound", `documents settled its sequence ${settled}, and it has ${info.lastSeq}`);
    if (before && before.consumerCreatedAt !== info.consumer.createdAt)
      find("consumer_recreated", `made anew at ${iso(info.consumer.createdAt)}`);
    const stranded = info.messages - info.pending - info.inFlight;
    if (stranded > 0)
      find("stranded", `${stranded} of its ${info.messages} messages are neither pending nor in flight`);
    if (queue.generation < deps.settings.generation && info.messages > 0)
      find("old_generation", `${info.messages} messages are left in generation ${queue.generation}`);
    for (const { what, is, should, ok } of checksOf(planned, deps.settings))
      if (!ok) find("queue_differs", `${what} is ${is} and should be ${should}`, `${stream} ${what}`);
  }
  for (const { stream, agent, why, isGone } of account.plan.broken)
    findings.push({ kind: isGone ? "stream_rewound" : "queue_differs", subject: stream, agent, detail: why });
  return findings;
}

/** None where the stream is gone by now. */
async function lastSeqNow({ bus }: Deps, queue: Queue): Promise<number> {
  try {
    return (await bus.inspect(queue)).lastSeq;
  } catch (error) {
    if (isPawlError(error, "bus_refused")) return 0;
    throw error;
  }
}

const iso = (at: number) => new Date(at).toISOString();

export function checksOf({ info }: PlannedQueue, settings: Settings): Checked[] {
  const check = (what: string, is: number, should: number): Checked => ({
    what,
    is: showDuration(is),
    should: showDuration(should),
    ok: is === should,
  });
  return [
    check("ack_wait", info.consumer.ackWait, settings.ackWait),
    check("duplicate_window", info.duplicateWindow, settings.duplicateWindow),
    {
      what: "max_deliver",
      is: String(info.consumer.maxDeliver),
      should: String(settings.maxDeliver),
      ok: info.consumer.maxDeliver === settings.maxDeliver,
    },
  ];
}

/** Effective settings of all queues: those that agree in one line. */
export function checkedSettings(account: Account, settings: Settings): Checked[] {
  const all = account.plan.queues.flatMap((planned) =>
    checksOf(planned, settings).map((one) =>
      one.ok ? one : { ...one, what: `${one.what} of ${planned.stream}` },
    ),
  );
  const shortest = Math.max(redeliveryHorizon(settings), SHORTEST_RETENTION);
  const retention: Checked = {
    what: "retention",
    is: showDuration(settings.retention),
    should: `${showDuration(shortest)} or more`,
    ok: settings.retention >= shortest,
  };
  const shown = [...all, retention];
  return shown.filter((one, i) => shown.findIndex((other) => other.what === one.what) === i);
}

export function queueReports(account: Account): QueueReport[] {
  return account.plan.queues.map(({ queue, stream, info }) => ({
    stream,
    agent: queue.agent,
    lastSeq: info.lastSeq,
    messages: info.messages,
    pending: info.pending,
    inFlight: info.inFlight,
    delivered: info.consumer.delivered,
    ackFloor: info.consumer.ackFloor,
    classes: account.books.get(stream)?.counts() ?? NO_TALLY.classes,
  }));
}

/** What documents say of each agent, with what became of its queues' sequences. */
export function agentTallies(account: Account): Record<string, Tally> {
  const tallies: Record<string, Tally> = structuredClone(account.tallies) as Record<string, Counting>;
  for (const { queue, stream } of account.plan.queues) {
    const book = account.books.get(stream);
    if (!book) continue;
    const carriedOver = book.size - (book.period.upTo - book.period.after);
    const sequences: Tally = { ...NO_TALLY, classes: book.counts(), carriedOver };
    tallies[queue.agent] = added(tallies[queue.agent] ?? NO_TALLY, sequences);
  }
  return Object.fromEntries(Object.entries(tallies).sort(([a], [b]) => (a < b ? -1 : 1)));
}
