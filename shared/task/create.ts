import { NO_COST } from "../journal/cost.ts";
import { countsAfter } from "./counts.ts";
import type { Dispatched, Failed, Millis, RawMessage, Running, Scheduled, TaskFailure } from "./document.ts";
import type { Envelope } from "./envelope.ts";
import type { Mark } from "./events.ts";
import type { births } from "./table.ts";
import { newsOf } from "./transitions.ts";

type Kind = Pick<
  Envelope,
  "id" | "agent" | "lane" | "orderingKey" | "parent" | "meta" | "input" | "inputHash"
>;

type Births = typeof births;

/** What all births have in common. The table says which states each may bring a task into. */
function born<B extends keyof Births>(
  event: B,
  state: Births[B]["to"][number],
  kind: Kind,
  { createdAt, ...mark }: Mark & { readonly createdAt: Millis },
) {
  const fence = state === "running" ? 1 : 0;
  return {
    v: 1,
    id: kind.id,
    agent: kind.agent,
    lane: kind.lane,
    ...(kind.orderingKey !== undefined && { orderingKey: kind.orderingKey }),
    ...(kind.parent !== undefined && { parent: kind.parent }),
    ...(kind.meta !== undefined && { meta: kind.meta }),
    input: kind.input,
    inputHash: kind.inputHash,
    fence,
    stamp: mark.stamp,
    released: true,
    lease: 0,
    // However it came, the message that brought the task was its first dispatch.
    dispatches: 1,
    attempts: 0,
    executions: 0,
    epoch: 0,
    journaled: 0,
    spent: NO_COST,
    saved: NO_COST,
    silentStarts: 0,
    settled: [],
    settledPages: 0,
    publishDuplicates: { window: 0, subject: 0, document: 0, key: 0 },
    redeliveriesSkipped: 0,
    counts: countsAfter({}, { event, state }),
    signals: [],
    history: [{ at: mark.now, event, state, fence, stamp: mark.stamp, by: mark.by }],
    createdAt,
    updatedAt: mark.now,
  } as const;
}

/**
 * A task as its submit writes it. The first claim builds the same document from the message instead of reading it,
 * so everything here must come from the envelope.
 */
export function submitted(envelope: Envelope, queue: string): Dispatched {
  const { at, stamp, by } = envelope;
  const mark = { now: at, createdAt: at, stamp, by };
  const base = born("submit", "dispatched", envelope, mark);
  return { ...base, state: "dispatched", queue };
}

/** A task for later: it is dispatched when it is due. */
export function scheduled(envelope: Envelope, dueAt: Millis): Scheduled {
  const { at, stamp, by } = envelope;
  const mark = { now: at, createdAt: at, stamp, by };
  const base = born("submit", "scheduled", envelope, mark);
  return { ...base, dispatches: 0, state: "scheduled", dueAt };
}

/** A message published directly, with no document behind it: it is its own submit. */
export function adopted(
  envelope: Envelope,
  holder: { queue: string; seq: number; token: string; runner: string; via: string; lease: number },
  mark: Mark,
): Running {
  const base = born("adopt", "running", envelope, { ...mark, createdAt: mark.now });
  return {
    ...base,
    state: "running",
    ...holder,
    started: true,
    fresh: true,
    released: false,
    executions: 1,
    silentStarts: 1,
  };
}

/** A message that can't become a task, kept as a dead letter. */
export function deadLetter(
  kind: Kind,
  carrier: { queue: string; seq: number; dispatch: number },
  error: TaskFailure,
  expiresAt: Millis,
  mark: Mark,
  raw?: RawMessage,
): Failed {
  return {
    ...born("deadLetter", "failed", kind, { ...mark, createdAt: mark.now }),
    state: "failed",
    error,
    ...(raw && { raw }),
    settled: [{ ...carrier, outcome: "failed", at: mark.now }],
    expiresAt,
    ...newsOf(mark),
  };
}
