import type { Deps } from "../ports/deps.ts";
import { type Queue, streamName } from "../task/names.ts";
import { sha256 } from "../values/json.ts";
import { REMEMBERED, remembered } from "./memory.ts";
import { queueFill, storeFill } from "./pressure.ts";
import { isSplit, quotaOf, readQuotas, type Subject, shownSubject } from "./quotas.ts";
import { seenLately, write } from "./records.ts";
import type { Place } from "./recount.ts";
import { isFar, isSure, isWithin, type Limits, limitsOf, noUsage, resolved, type Usage } from "./usage.ts";

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
export interface Limited {
  readonly subject: Subject;
  /** Set where it is limited in this queue, or in this agent's own bucket, and not in all that it has. */
  readonly place?: Queue | Place;
  readonly limits: Limits;
  readonly record: string;
  /** What the submit adds. */
  readonly bytes: number;
  /** All that is in its queue, whoever's it is, where somebody knows that. */
  readonly inQueue?: number | undefined;
  /** The store has an end. */
  readonly isBounded: boolean;
}

/** What a submit adds to its store and its queue. */
export interface Bytes {
  readonly inStore: number;
  readonly inQueue: number;
}

/** All whose quota may refuse a submit, and by what each is limited. */
export async function limitedBy(deps: Deps, wanted: Wanted, { inStore, inQueue }: Bytes): Promise<Limited[]> {
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
    // A share is of one bucket: where there are several, of this agent's, and only what is there is measured with it.
    const { bytes, ...others } = quota;
    const isApart = isSplit(deps.settings, subject) && typeof bytes === "string";
    const inStores = (limits: Limits, place?: Place): Limited[] => {
      const one = { subject, limits, record: usageRecord(subject, place), bytes: inStore, isBounded };
      return Object.keys(limits).length > 0 ? [{ ...one, ...(place && { place }) }] : [];
    };
    const inAll = isApart
      ? [
          ...inStores(limitsOf(others, fill, inStore)),
          ...inStores(limitsOf({ bytes }, fill, inStore), { agent }),
        ]
      : inStores(limitsOf(quota, fill, inStore, isSplit(deps.settings, subject)));
    const most = resolved(quota.queue, lane);
    const record = usageRecord(subject, queue);
    const inQueueToo = async (limit: number): Promise<Limited[]> => {
      const one = { subject, place: queue, limits: { queue: limit }, record, bytes: inQueue, isBounded };
      const share = { ...one, inQueue: lane?.bytes };
      // As with the store, nothing has to be counted while all that is in the queue is within the limit. But what is due
      // later is not in it yet: that is counted from the first on.
      const isFree = !wanted.isLater && isWithin(limit, lane, inQueue) && (await mayPass(deps, share));
      return isFree ? [] : [share];
    };
    return [...inAll, ...(most === undefined ? [] : await inQueueToo(most))];
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

/** The name of the record of what one has used, in all or in one place. */
export function usageRecord({ kind, name }: Subject, place?: Place): string {
  const { agent, lane } = place ?? {};
  const where = lane === undefined ? `bucket of ${agent}` : `${agent}/${lane}`;
  return `usage-${kind}-${sha256(place ? `${name} in ${where}` : name).slice(0, 32)}`;
}

export function shownLimited({ subject, place }: Limited): string {
  const whose = shownSubject(subject);
  if (!place) return whose;
  return "namespace" in place
    ? `${whose} in ${streamName(place)}`
    : `${whose} in the bucket of ${place.agent}`;
}
