import type { Fill } from "../ports/store.ts";
import { partNames, type Quota, type QuotaPart, quotaParts } from "../settings/quota.ts";
import type { Millis } from "../task/document.ts";

/**
 * What an owner or agent has taken, in all or in one place, as a record of the store has it. A submit adds to it, and nothing takes away: what is
 * over is found by counting anew, when the quota seems used up.
 */
export interface Usage {
  /** For people: whose it is. */
  readonly of: string;
  readonly tasks: number;
  readonly bytes: number;
  /** When tasks and bytes were last counted in the documents; 0 where they never were, or not all was added since. */
  readonly countedAt: Millis;
  /** The last submit that was added. */
  readonly addedAt: Millis;
  /** The minute of `submits`, since 1970; and those of the minute before. */
  readonly minute: number;
  readonly submits: number;
  readonly before: number;
}

/** A quota with shares resolved, and without parts that have no limit. */
export type Limits = { readonly [P in QuotaPart]?: number };

/** Why a submit is not taken. */
export interface Excess {
  readonly part: QuotaPart;
  readonly used: number;
  readonly limit: number;
  /** Seconds until it may be. */
  readonly after: number;
}

/** What a message has beside its task's input, about: who submitted it and when, its headers, its seal. */
export const MESSAGE = 700;
const MINUTE = 60_000;
const DAY = 86_400_000;
/** A usage that nothing was added to for so long may be of a time when there was no quota. */
const STALE = 600_000;

/**
 * What holds for all tasks of one together. `fill`: of the store, where it has an end. With all that is in it within the
 * limit, a submit of so many bytes can't go beyond it, whoever's the rest is: then nothing has to be counted. Unless more is
 * in other buckets.
 */
export function limitsOf(
  { queue: _, ...quota }: Quota,
  fill: Fill | undefined,
  adding: number,
  hasMore = false,
): Limits {
  const all = Object.entries(quota).flatMap(([part, value]): [string, number][] => {
    const limit = resolved(value, fill);
    const isFar = part === "bytes" && !hasMore && isWithin(limit, fill, adding);
    return limit === undefined || isFar ? [] : [[part, limit]];
  });
  return Object.fromEntries(all) as Limits;
}

/** A part in bytes; undefined where it has no limit, as a share of what has no end. */
export function resolved(value: Quota[QuotaPart], fill: Fill | undefined): number | undefined {
  if (typeof value !== "string") return value ?? undefined;
  return fill && Math.floor((fill.limit * Number(value.slice(0, -1))) / 100);
}

/** Whether so many bytes more leave it within the limit, whoever's all that is. */
export function isWithin(limit: number | undefined, fill: Fill | undefined, adding: number): boolean {
  return limit !== undefined && fill !== undefined && fill.bytes + adding <= limit;
}

export function noUsage(of: string): Usage {
  return { of, tasks: 0, bytes: 0, countedAt: 0, addedAt: 0, minute: 0, submits: 0, before: 0 };
}

/** With one more submit of so many bytes. */
export function withSubmit(usage: Usage, bytes: number, now: Millis): Usage {
  const { minute, submits, before } = turned(usage, now);
  return {
    ...usage,
    tasks: usage.tasks + 1,
    bytes: usage.bytes + bytes,
    addedAt: now,
    minute,
    submits: submits + 1,
    before,
  };
}

/** As it was counted since, with what was added while it was counted. */
export function withCount(
  now: Usage,
  before: Usage,
  counted: Pick<Usage, "tasks" | "bytes">,
  at: Millis,
): Usage {
  return {
    ...now,
    tasks: counted.tasks + now.tasks - before.tasks,
    bytes: counted.bytes + now.bytes - before.bytes,
    countedAt: at,
  };
}

/** With as much as was counted, where it has less. */
export function atLeast(usage: Usage, { tasks, bytes }: Pick<Usage, "tasks" | "bytes">): Usage {
  return { ...usage, tasks: Math.max(usage.tasks, tasks), bytes: Math.max(usage.bytes, bytes) };
}

function turned(
  { minute, submits, before }: Usage,
  now: Millis,
): Pick<Usage, "minute" | "submits" | "before"> {
  const current = Math.floor(now / MINUTE);
  if (current === minute) return { minute, submits, before };
  return { minute: current, submits: 0, before: current === minute + 1 ? submits : 0 };
}

/** Of the last sixty seconds, about: the minute before counts by as much of it as is not over sixty seconds ago. */
export function submitsOf(usage: Usage, now: Millis): number {
  const { submits, before } = turned(usage, now);
  return submits + before * (1 - (now % MINUTE) / MINUTE);
}

/** What of a quota one more submit of so many bytes would go beyond; undefined where it may be taken. */
export function excess(
  limits: Limits,
  usage: Usage,
  wanted: { readonly bytes: number; readonly usd: number; readonly now: Millis },
  recountAfter: number,
): Excess | undefined {
  const { now } = wanted;
  const { tasks, bytes } = usage;
  const used = { tasks, bytes, queue: bytes, submits: submitsOf(usage, now), usd: wanted.usd };
  const added = { tasks: 1, bytes: wanted.bytes, queue: wanted.bytes, submits: 1, usd: 0 };
  const after = {
    tasks: recountAfter,
    bytes: recountAfter,
    queue: recountAfter,
    submits: Math.max(1, Math.ceil((MINUTE - (now % MINUTE)) / 1_000)),
    usd: Math.ceil((DAY - (now % DAY)) / 1_000),
  };
  const isOver = (part: QuotaPart, limit: number) =>
    part === "usd" ? used.usd >= limit : used[part] + added[part] > limit;
  // What passes latest is named: to come again sooner would be for nothing.
  const over = partNames
    .filter((part) => limits[part] !== undefined && isOver(part, limits[part]))
    .toSorted((a, b) => after[b] - after[a]);
  const [part] = over;
  if (part === undefined) return undefined;
  return { part, used: used[part], limit: limits[part] as number, after: after[part] };
}

/** It has all that there was when it was counted, and all that was added since. */
export function isSure({ countedAt, addedAt }: Usage, now: Millis): boolean {
  return countedAt > 0 && now - Math.max(countedAt, addedAt) <= STALE;
}

/**
 * Whether it is so far within its limits that it may go on without a count, though not all that it has was added. In a queue
 * it is while even with all that lies there, whoever's it is, it is within them; otherwise up to half of them.
 */
export function isFar(limits: Limits, usage: Usage, adding: number, inQueue: number | undefined): boolean {
  const { tasks = Infinity, bytes = Infinity, queue = Infinity } = limits;
  const after = usage.bytes + adding;
  if (inQueue !== undefined) return after + inQueue <= queue;
  return 2 * (usage.tasks + 1) <= tasks && 2 * after <= Math.min(bytes, queue);
}

/** "has used 998 of 1000 tasks that are not over" */
export function shownExcess({ part, used, limit }: Excess): string {
  const rounded = part === "usd" ? Math.round(used * 100) / 100 : Math.ceil(used);
  return `has ${rounded} of the ${limit} ${quotaParts[part].means} that its quota allows`;
}
