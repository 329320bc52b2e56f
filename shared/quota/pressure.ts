import { messageOf, NotNow } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import type { Fill } from "../ports/store.ts";
import { type Queue, streamName } from "../task/names.ts";

/** Up to here submits are taken. The rest is for what accepted tasks write: claims, journals, results, retries. */
const SUBMITS_UP_TO = 0.8;
/** An answer is good for so long; what this process adds meanwhile is added to it. */
const KEPT = 1_000;
const RETRY_AFTER = 30;

interface Kept {
  readonly at: number;
  /** Undefined also where nobody answers: whatever is done next finds that out, and is patient. */
  readonly fill: Promise<Fill | undefined>;
  added: number;
}

/** By the store or bus that was asked: on platforms where a connection lives no longer than its request, so do these. */
const asked = new WeakMap<object, Map<string, Kept>>();
/** Of which was said that nobody knows how full it is. */
const unseen = new WeakMap<object, Set<string>>();

function kept(
  deps: Pick<Deps, "clock" | "log">,
  of: object,
  key: string,
  ask: () => Promise<Fill | undefined>,
): Kept {
  const all = asked.get(of) ?? new Map<string, Kept>();
  asked.set(of, all);
  const now = deps.clock.monotonic();
  const last = all.get(key);
  if (last && now - last.at < KEPT) return last;
  const fresh: Kept = { at: now, fill: seen(deps, of, key, ask), added: 0 };
  all.set(key, fresh);
  return fresh;
}

/** What can't be looked at has no limit until it can: that is said once, and not at every submit. */
async function seen(
  { log }: Pick<Deps, "log">,
  of: object,
  key: string,
  ask: () => Promise<Fill | undefined>,
): Promise<Fill | undefined> {
  const told = unseen.get(of) ?? new Set();
  unseen.set(of, told);
  try {
    const fill = await ask();
    told.delete(key);
    return fill;
  } catch (error) {
    if (!told.has(key)) log("warn", "quota.unseen", { of: key, reason: messageOf(error) });
    told.add(key);
    return undefined;
  }
}

const ofStore = (deps: Deps, agent: string) =>
  kept(deps, deps.store, `store of ${agent}`, async () => deps.store.usage?.(agent));
const ofQueue = (deps: Deps, queue: Queue) =>
  kept(deps, deps.bus, streamName(queue), async () => deps.bus.usage?.(queue));

/** How full the store is, by what submits are measured with; undefined where it has no end. */
export async function storeFill(deps: Deps, agent: string): Promise<Fill | undefined> {
  return measured(ofStore(deps, agent));
}

/** How full a queue is, as its submits are measured; undefined where it has no end, or is not there. */
export async function queueFill(deps: Deps, queue: Queue): Promise<Fill | undefined> {
  return measured(ofQueue(deps, queue));
}

async function measured(asked: Kept): Promise<Fill | undefined> {
  const fill = await asked.fill;
  return fill && { ...fill, bytes: fill.bytes + asked.added };
}

/** Whether submits are refused because of it. */
export function isNearlyFull({ bytes, limit }: Fill, added = 0): boolean {
  return bytes + added > limit * SUBMITS_UP_TO;
}

/** A submit that is let through, as far as room goes; `undo` where it is refused for another reason. */
interface Let {
  undo(): void;
}

/** Why a submit of so many bytes is not taken, if its store or its queue would be left with less than the reserve. */
export async function pressure(
  deps: Deps,
  agent: string,
  queue: Queue,
  bytes: { readonly inStore: number; readonly inQueue: number },
): Promise<NotNow | Let> {
  const [store, lane] = [ofStore(deps, agent), ofQueue(deps, queue)];
  const [storeFilled, laneFilled] = await Promise.all([store.fill, lane.fill]);
  if (storeFilled && isNearlyFull(storeFilled, store.added + bytes.inStore)) {
    const why = `${deps.store.name} has ${refusing(storeFilled, bytes.inStore)}`;
    return new NotNow("store_full", why, RETRY_AFTER);
  }
  if (laneFilled && isNearlyFull(laneFilled, lane.added + bytes.inQueue)) {
    const why = `${streamName(queue)} has ${refusing(laneFilled, bytes.inQueue)}`;
    return new NotNow("queue_full", why, RETRY_AFTER);
  }
  const add = (times: 1 | -1) => {
    store.added += times * bytes.inStore;
    lane.added += times * bytes.inQueue;
  };
  add(1);
  return { undo: () => add(-1) };
}

export function refusing({ bytes, limit }: Fill, more = 0): string {
  const wanted = more > 0 ? `, and a task of ${more} was submitted` : "";
  return `${bytes} of ${limit} bytes${wanted}: from ${Math.floor(limit * SUBMITS_UP_TO)} on submits are refused, so that what was accepted can be done`;
}
