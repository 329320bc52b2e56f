import { isPawlError, messageOf, NotNow } from "../errors/errors.ts";
import { readSpent } from "../meter/spent.ts";
import type { Deps } from "../ports/deps.ts";
import type { Revision } from "../ports/store.ts";
import { policies } from "../retry/policies.ts";
import { pause } from "../retry/retry.ts";
import type { QuotaPart } from "../settings/quota.ts";
import { type Bytes, type Limited, limitedBy, shownLimited, usageRecord, type Wanted } from "./limited.ts";
import { inTurn, REMEMBERED, remembered } from "./memory.ts";
import { pressure } from "./pressure.ts";
import { type Subject, shownSubject } from "./quotas.ts";
import { write } from "./records.ts";
import { countedOf, recount } from "./recount.ts";
import {
  atLeast,
  type Excess,
  excess,
  isFar,
  isSure,
  MESSAGE,
  noUsage,
  shownExcess,
  submitsOf,
  type Usage,
  withCount,
  withSubmit,
} from "./usage.ts";

/** What a document has beside its input, about: its history, its seal. */
const BESIDE_INPUT = 1_500;
/** What the documents themselves say, when they are counted. */
const COUNTED: readonly QuotaPart[] = ["tasks", "bytes", "queue"];

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
  const bytes: Bytes = { inStore: wanted.bytes + BESIDE_INPUT, inQueue: wanted.bytes + MESSAGE };
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
  const { limits, subject, place, bytes } = one;
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
  const counted = countedOf(count, subject, place);
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
