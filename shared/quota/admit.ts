import { isPawlError, messageOf, NotNow } from "../errors/errors.ts";
import { readSpent } from "../meter/spent.ts";
import type { Deps } from "../ports/deps.ts";
import type { Revision } from "../ports/store.ts";
import { policies } from "../retry/policies.ts";
import { pause } from "../retry/retry.ts";
import type { Queue } from "../task/names.ts";
import { sha256 } from "../values/json.ts";
import { inTurn, remembered } from "./memory.ts";
import { pressure, storeFill } from "./pressure.ts";
import { quotaOf, readQuotas, type Subject, shownSubject } from "./quotas.ts";
import { countedOf, recount } from "./recount.ts";
import {
  type Excess,
  excess,
  type Limits,
  limitsOf,
  noUsage,
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
}

/** A limited owner or agent, and the record of what it has taken. */
interface Limited {
  readonly subject: Subject;
  readonly limits: Limits;
  readonly record: string;
  /** The store has an end. */
  readonly isBounded: boolean;
}

/** What a document has beside its input, about: its history, its seal. */
const BESIDE_INPUT = 1_500;
/** What an operator sets is heeded, and what tasks spend is seen, within so much time. */
const REMEMBERED = 5_000;
/** A usage that nothing was added to for so long may be of a time when there was no quota. */
const STALE = 600_000;

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
  const bytes = wanted.bytes + BESIDE_INPUT;
  const [room, limited] = await Promise.all([
    pressure(deps, wanted.agent, wanted.queue, { inStore: bytes, inQueue: wanted.bytes }),
    limitedBy(deps, wanted, bytes),
  ]);
  if (room instanceof NotNow) return { error: room, why: room.code };
  if (limited.length === 0) return undefined;
  // One after the other in this process: they would only refuse each other's writes.
  const records = limited.map(({ record }) => record).sort();
  const refused = await inTurn(deps.store, records, () => take(deps, limited, bytes));
  if (refused) room.undo();
  return refused;
}

async function limitedBy(deps: Deps, { agent, owner }: Wanted, bytes: number): Promise<Limited[]> {
  const set = await remembered(deps, deps.store, "quotas", REMEMBERED, () => readQuotas(deps.store));
  const subjects: Subject[] = [
    ...(owner === undefined ? [] : [{ kind: "owner", name: owner } as const]),
    { kind: "agent", name: agent },
  ];
  const fill = await storeFill(deps, agent);
  const isBounded = fill !== undefined;
  const limited = subjects
    .map((subject) => ({ subject, limits: limitsOf(quotaOf(deps, set, subject), fill, bytes) }))
    .filter(({ limits }) => Object.keys(limits).length > 0)
    .map(async (one) => ({ ...one, record: await usageRecord(one.subject), isBounded }));
  return Promise.all(limited);
}

async function usageRecord(subject: Subject): Promise<string> {
  return `usage-${subject.kind}-${sha256(subject.name).slice(0, 32)}`;
}

/** What one has used, as it was last counted or added; with submits of the last minute. */
export async function usageOf(
  { store, clock }: Pick<Deps, "store" | "clock">,
  subject: Subject,
): Promise<{ readonly tasks: number; readonly bytes: number; readonly submits: number }> {
  const found = await store.getRecord(await usageRecord(subject));
  const usage = found ? (JSON.parse(found.text) as Usage) : noUsage(shownSubject(subject));
  return { tasks: usage.tasks, bytes: usage.bytes, submits: submitsOf(usage, clock.now()) };
}

/** Adds a submit to the usage of each, or says whose quota does not allow it. */
async function take(deps: Deps, limited: readonly Limited[], bytes: number): Promise<Refusal | undefined> {
  const left = new Set(limited);
  for (let tries = 1; tries <= policies.counters.tries; tries++) {
    // All are asked before any is written: who is refused by its agent has used nothing of its own.
    const found = await Promise.all([...left].map((one) => room(deps, one, bytes)));
    const refused = found.find(({ over }) => over !== undefined);
    if (refused) return refusalOf(refused.one.subject, refused.over as Excess);
    for (const { one, usage, seen } of found) {
      const after = withSubmit(usage, bytes, deps.clock.now());
      const written = await deps.store.putRecord(one.record, JSON.stringify(after), seen);
      if (written.kind === "written") left.delete(one);
    }
    if (left.size === 0) return undefined;
    await pause(deps, "counters", tries);
  }
  const names = [...left].map(({ subject }) => shownSubject(subject)).join(" and ");
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
async function room(deps: Deps, one: Limited, bytes: number): Promise<Room> {
  const { limits, subject } = one;
  const read = async () => {
    const found = await deps.store.getRecord(one.record);
    const usage = found ? (JSON.parse(found.text) as Usage) : noUsage(shownSubject(subject));
    return { usage, seen: found?.revision };
  };
  const usd = limits.usd === undefined ? 0 : await spentBy(deps, subject);
  const now = deps.clock.now();
  const wanted = { bytes, usd, now };
  const before = await read();
  const over = excess(limits, before.usage, wanted, 1);
  const isStale = now - Math.max(before.usage.countedAt, before.usage.addedAt) > STALE;
  const isCounted = limits.tasks !== undefined || limits.bytes !== undefined;
  const mayHelp = over ? over.part === "tasks" || over.part === "bytes" : isStale;
  if (!isCounted || !mayHelp) return { one, ...before, over };
  const { count, isNew, after } = await recount(deps, one.isBounded);
  // Counted before the last submits were added, it says less than the usage does.
  if (!isNew && count.at <= Math.max(before.usage.countedAt, before.usage.addedAt))
    return { one, ...before, over: over && { ...over, after } };
  const current = await read();
  const usage = withCount(current.usage, before.usage, countedOf(count, subject), count.at);
  return { one, usage, seen: current.seen, over: excess(limits, usage, wanted, after) };
}

async function spentBy(deps: Deps, { kind, name }: Subject): Promise<number> {
  const now = deps.clock.now();
  const spent = await remembered(deps, deps.store, "spent", REMEMBERED, () => readSpent(deps.store, now));
  return (kind === "owner" ? spent.owners : spent.agents).get(name) ?? 0;
}

function refusalOf(subject: Subject, over: Excess): Refusal {
  const text = `${shownSubject(subject)} ${shownExcess(over)}. Try again in ${over.after} s`;
  return { error: new NotNow("quota_exceeded", text, over.after), why: over.part };
}
