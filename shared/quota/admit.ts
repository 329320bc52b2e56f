import { isPawlError, messageOf, NotNow } from "../errors/errors.ts";
import { readSpent } from "../meter/spent.ts";
import type { Deps } from "../ports/deps.ts";
import type { Revision, StoredRecord } from "../ports/store.ts";
import { policies } from "../retry/policies.ts";
import { pause } from "../retry/retry.ts";
import type { QuotaPart } from "../settings/quota.ts";
import { type Queue, streamName } from "../task/names.ts";
import { sha256 } from "../values/json.ts";
import { askedLately, inTurn, remembered } from "./memory.ts";
import { pressure, queueFill, storeFill } from "./pressure.ts";
import { quotaOf, readQuotas, type Subject, shownSubject } from "./quotas.ts";
import { countedOf, recount } from "./recount.ts";
import {
  atLeast,
  type Excess,
  excess,
  isFar,
  isWithin,
  type Limits,
  limitsOf,
  MESSAGE,
  noUsage,
  resolved,
  shownExcess,
  submitsOf,
  type Usage,
  withCount,
  withSubmit,
} from "./usage.ts";

/** A task that is about to be submitted. */
export interface Wanted {
  readonly id: string;
  readonly agent: string;
  readonly owner?: string | undefined;
  readonly queue: Queue;
  /** Of its input. */
  readonly bytes: number;
  /** It is another task's child. */
  readonly isChild: boolean;
  /** It is due later: nothing of it is in its queue yet. */
  readonly isLater: boolean;
}

/** A limited owner or agent, and the record of what it has taken. */
interface Limited {
  readonly subject: Subject;
  /** Set where it is limited in this queue, and not in all that it has. */
  readonly queue?: Queue;
  readonly limits: Limits;
  readonly record: string;
  /** What the submit adds. */
  readonly bytes: number;
  /** All that is in its queue, whoever's it is, where somebody knows that. */
  readonly inQueue?: number | undefined;
  /** The store has an end. */
  readonly isBounded: boolean;
}

/** What a document has beside its input, about: its history, its seal. */
const BESIDE_INPUT = 1_500;
/** What the documents themselves say, when they are counted. */
const COUNTED: readonly QuotaPart[] = ["tasks", "bytes", "queue"];
/** What an operator sets is heeded, and what tasks spend is seen, within so much time. */
const REMEMBERED = 5_000;
/** A usage that nothing was added to for so long may be of a time when there was no quota. */
const STALE = 600_000;
/** Whether one has a record in a queue is looked at no more often than this: nearly nobody has, and everybody submits. */
const LOOK_EVERY = 1_000;

/**
 * Lets a task be submitted, or throws `NotNow`. Called before anything is stored, so a submit that is refused leaves
 * nothing; one that dies after this has been added to its owner's usage without a task, until that is counted anew. The same
 * task again is never refused: it is there already.
 */
export async function admit(deps: Deps, wanted: Wanted): Promise<void> {
  const refused = await refusal(deps, wanted).catch((error: unknown) => {
    // The write that follows is patient with a store that is away; what it takes is found by the next count.
    const isAway = isPawlError(error, "store_unavailable");
    // An agent's own function need not be allowed to read quotas, and its children are not a stranger's.
    const isForbidden = wanted.isChild && isPawlError(error, "store_refused");
    if (!isAway && !isForbidden) throw error;
    deps.log("warn", "quota.unread", { task: wanted.id, reason: messageOf(error) });
    return undefined;
  });
  if (!refused || (await deps.store.get(wanted.id))) return;
  const { error, why } = refused;
  deps.meter.count("submits_refused", { agent: wanted.agent, why });
  deps.log("warn", "submit.refused", {
    agent: wanted.agent,
    why,
    owner: wanted.owner ?? "",
    reason: error.message,
  });
  throw error;
}

interface Refusal {
  readonly error: NotNow;
  readonly why: string;
}

async function refusal(deps: Deps, wanted: Wanted): Promise<Refusal | undefined> {
  const bytes = { inStore: wanted.bytes + BESIDE_INPUT, inQueue: wanted.bytes + MESSAGE };
  const [room, limited] = await Promise.all([
    pressure(deps, wanted.agent, wanted.queue, wanted.isLater ? { ...bytes, inQueue: 0 } : bytes),
    limitedBy(deps, wanted, bytes),
  ]);
  if (room instanceof NotNow) return { error: room, why: room.code };
  if (limited.length === 0) return undefined;
  // One after the other in this process: they would only refuse each other's writes.
  const records = limited.map(({ record }) => record).sort();
  const refused = await inTurn(deps.store, records, () => take(deps, limited));
  if (refused) room.undo();
  return refused;
}

interface Bytes {
  readonly inStore: number;
  readonly inQueue: number;
}

async function limitedBy(deps: Deps, wanted: Wanted, { inStore, inQueue }: Bytes): Promise<Limited[]> {
  const { agent, owner, queue } = wanted;
  const set = await remembered(deps, deps.store, "quotas", REMEMBERED, () => readQuotas(deps.store));
  const subjects: Subject[] = [
    ...(owner === undefined ? [] : [{ kind: "owner", name: owner } as const]),
    { kind: "agent", name: agent },
  ];
  const [fill, lane] = await Promise.all([storeFill(deps, agent), queueFill(deps, queue)]);
  const isBounded = fill !== undefined;
  const limited = subjects.map(async (subject): Promise<Limited[]> => {
    const quota = quotaOf(deps, set, subject);
    const limits = limitsOf(quota, fill, inStore);
    const inAll = { subject, limits, record: usageRecord(subject), bytes: inStore, isBounded };
    const most = resolved(quota.queue, lane);
    const record = usageRecord(subject, queue);
    const inQueueToo = async (limit: number): Promise<Limited[]> => {
      const one = { subject, queue, limits: { queue: limit }, record, bytes: inQueue, isBounded };
      const share = { ...one, inQueue: lane?.bytes };
      // As with the store, nothing has to be counted while all that is in the queue is within the limit. But what is due
      // later is not in it yet: that is counted from the first on.
      const isFree = !wanted.isLater && isWithin(limit, lane, inQueue) && (await mayPass(deps, share));
      return isFree ? [] : [share];
    };
    return [
      ...(Object.keys(limits).length > 0 ? [inAll] : []),
      ...(most === undefined ? [] : await inQueueToo(most)),
    ];
  });
  return (await Promise.all(limited)).flat();
}

/**
 * Whether a submit need not be added to what its owner has in a queue: what was added, together with all that is in the
 * queue, is within the limit. Only who was counted, and has much, is counted on, or what comes in between would be missing.
 */
async function mayPass(deps: Deps, one: Limited): Promise<boolean> {
  const found = await seenLately(deps, one.record);
  const usage = found ? (JSON.parse(found.text) as Usage) : noUsage(shownLimited(one));
  if (!isFar(one.limits, usage, one.bytes, one.inQueue)) return false;
  if (!found || !isSure(usage, deps.clock.now())) return true;
  // Not at the limit itself, or every submit around it would take the other way.
  const most = (one.limits.queue ?? 0) / 2;
  if (!isFar({ queue: most }, usage, one.bytes, one.inQueue)) return false;
  // From now on it lacks something: who comes near the limit again has to be counted anew.
  return write(deps, one.record, { ...usage, countedAt: 0 }, found.revision);
}

/** A record as it was not much longer ago than a second. */
function seenLately(deps: Deps, record: string): Promise<StoredRecord | undefined> {
  const asked = askedLately<StoredRecord | undefined>(deps, deps.store, LOOK_EVERY);
  const last = asked.get(record);
  if (last) return last;
  const found = deps.store.getRecord(record);
  asked.set(record, found);
  // Who asks next is not given the same error.
  found.catch(() => asked.delete(record));
  return found;
}

/** False where somebody else has written it. */
async function write(deps: Deps, record: string, usage: Usage, seen: Revision | undefined): Promise<boolean> {
  const text = JSON.stringify(usage);
  const written = await deps.store.putRecord(record, text, seen);
  const asked = askedLately<StoredRecord | undefined>(deps, deps.store, LOOK_EVERY);
  if (written.kind === "written") asked.set(record, Promise.resolve({ text, revision: written.revision }));
  else asked.delete(record);
  return written.kind === "written";
}

/** It has all that there was when it was counted, and all that was added since. */
function isSure({ countedAt, addedAt }: Usage, now: number): boolean {
  return countedAt > 0 && now - Math.max(countedAt, addedAt) <= STALE;
}

function usageRecord({ kind, name }: Subject, queue?: Queue): string {
  const whose = queue ? `${name} in ${queue.agent}/${queue.lane}` : name;
  return `usage-${kind}-${sha256(whose).slice(0, 32)}`;
}

const shownLimited = ({ subject, queue }: Limited) =>
  `${shownSubject(subject)}${queue ? ` in ${streamName(queue)}` : ""}`;

/** What one has used, as it was last counted or added; with submits of the last minute. */
export async function usageOf(
  { store, clock }: Pick<Deps, "store" | "clock">,
  subject: Subject,
): Promise<{ readonly tasks: number; readonly bytes: number; readonly submits: number }> {
  const found = await store.getRecord(usageRecord(subject));
  const usage = found ? (JSON.parse(found.text) as Usage) : noUsage(shownSubject(subject));
  return { tasks: usage.tasks, bytes: usage.bytes, submits: submitsOf(usage, clock.now()) };
}

/** Adds a submit to the usage of each, or says whose quota does not allow it. */
async function take(deps: Deps, limited: readonly Limited[]): Promise<Refusal | undefined> {
  const left = new Set(limited);
  for (let tries = 1; tries <= policies.counters.tries; tries++) {
    // All are asked before any is written: who is refused by its agent has used nothing of its own.
    const found = await Promise.all([...left].map((one) => room(deps, one)));
    const refused = found.find(({ over }) => over !== undefined);
    if (refused) return refusalOf(refused.one, refused.over as Excess);
    for (const { one, usage, seen } of found) {
      const after = withSubmit(usage, one.bytes, deps.clock.now());
      if (await write(deps, one.record, after, seen)) left.delete(one);
    }
    if (left.size === 0) return undefined;
    await pause(deps, "counters", tries);
  }
  const names = [...left].map(shownLimited).join(" and ");
  const error = new NotNow("quota_exceeded", `Too many submits of ${names} at once. Try again in 1 s`, 1);
  return { error, why: "contention" };
}

interface Room {
  readonly one: Limited;
  readonly usage: Usage;
  readonly seen: Revision | undefined;
  readonly over?: Excess | undefined;
}

/** How much is used, counted anew where it seems to be too much, or nobody knows. */
async function room(deps: Deps, one: Limited): Promise<Room> {
  const { limits, subject, queue, bytes } = one;
  const read = async () => {
    const found = await deps.store.getRecord(one.record);
    const usage = found ? (JSON.parse(found.text) as Usage) : noUsage(shownLimited(one));
    return { usage, seen: found?.revision };
  };
  const usd = limits.usd === undefined ? 0 : await spentBy(deps, subject);
  const now = deps.clock.now();
  const wanted = { bytes, usd, now };
  const before = await read();
  const over = excess(limits, before.usage, wanted, 1);
  const { countedAt, addedAt } = before.usage;
  const isKnown = isSure(before.usage, now);
  // A count is all documents' and the submit waits for it: what was not added is looked for where it may matter.
  const isOfAny = before.seen !== undefined || one.inQueue !== undefined;
  const mayWait = isKnown || (isOfAny && isFar(limits, before.usage, bytes, one.inQueue));
  const isCounted = COUNTED.some((part) => limits[part] !== undefined);
  const mayHelp = over ? COUNTED.includes(over.part) : !mayWait;
  const asItIs = { one, usage: { ...before.usage, countedAt: isKnown ? countedAt : 0 }, seen: before.seen };
  if (!isCounted || !mayHelp) return { ...asItIs, over };
  const { count, isNew, after } = await recount(deps, one.isBounded);
  const counted = countedOf(count, subject, queue);
  // Counted before the last submits were added, it says less than the usage does; but what lacks more had so much at least.
  if (!isNew && count.at <= Math.max(countedAt, addedAt)) {
    const usage = isKnown ? before.usage : atLeast(before.usage, counted);
    return { ...asItIs, over: excess(limits, usage, wanted, after) };
  }
  const current = await read();
  // Another's count, of before, lacks what was not added since: it does until there is a new one.
  const at = isNew || isKnown ? count.at : 0;
  const usage = withCount(current.usage, before.usage, counted, at);
  return { one, usage, seen: current.seen, over: excess(limits, usage, wanted, after) };
}

async function spentBy(deps: Deps, { kind, name }: Subject): Promise<number> {
  const now = deps.clock.now();
  const spent = await remembered(deps, deps.store, "spent", REMEMBERED, () => readSpent(deps.store, now));
  return (kind === "owner" ? spent.owners : spent.agents).get(name) ?? 0;
}

function refusalOf(one: Limited, over: Excess): Refusal {
  const text = `${shownLimited(one)} ${shownExcess(over)}. Try again in ${over.after} s`;
  return { error: new NotNow("quota_exceeded", text, over.after), why: over.part };
}
