import type { Agent } from "../agent.ts";
import { expireSome, keepExpiring } from "../dispatch/expire.ts";
import { correctLeft, drainLeft } from "../dispatch/left-queues.ts";
import { dispatchDue, rescue } from "../dispatch/sweep.ts";
import { messageOf } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import type { Queue } from "../task/names.ts";
import type { HandledAs } from "./ack.ts";
import type { Handled } from "./handle.ts";
import { type Lanes, readyLanes } from "./lanes.ts";
import { EMPTIED, type PullMode, pullLane } from "./pull.ts";

/** How many messages ended in which way. */
export type HandledCounts = Partial<Record<HandledAs, number>>;

/** Due tasks are looked for this often, and when a retry of this process's own comes due. */
const SWEEP_EVERY = 60_000;
/** And no sooner than this after the last time because a lane has run empty. */
const SWEEP_APART = 15_000;

const TOLD: ReadonlySet<HandledAs> = new Set(["failed", "dead-letter", "waiting", "in-doubt"]);

/** Which agent is served, and for how long. */
export interface Served {
  readonly name: string;
  readonly agent: Agent;
  readonly mode: PullMode;
  readonly stop: AbortSignal;
  /** Its lanes, where somebody has made sure of them. */
  readonly lanes?: Lanes;
}

/** All lanes of one agent, and what those that went have left: queues made sure of, tasks dispatched, messages handled. */
export async function serve(deps: Deps, served: Served): Promise<HandledCounts> {
  const { name, agent, mode } = served;
  const lanes = served.lanes ?? (await readyLanes(deps, name, agent.limits.lanes, mode));
  try {
    return await serveUnlessPaused(deps, { ...served, lanes });
  } finally {
    lanes.pause.close();
  }
}

/** While it is paused it is swept as always: what is due waits in its queue, where it costs no delivery. */
async function serveUnlessPaused(
  deps: Deps,
  { name, agent, mode, stop, ...given }: Served & { readonly lanes: Lanes },
): Promise<HandledCounts> {
  const { lanes } = agent.limits;
  const { queues, left, seen, pause } = given.lanes;
  const tally: HandledCounts = {};
  const sweep = sweeper(deps, name, agent);
  const rescues = new Set<Promise<void>>();
  const handled = ({ as, dueAt, id }: Handled) => {
    tally[as] = (tally[as] ?? 0) + 1;
    if (as === "abandoned" || as === "surplus") {
      const rescued = rescue(deps, id).finally(() => rescues.delete(rescued));
      rescues.add(rescued);
    }
    // People are told at once.
    if (deps.notify && TOLD.has(as)) sweep.expect(deps.clock.now());
    if (dueAt !== undefined) sweep.expect(dueAt);
  };
  const told = { handled, emptied: sweep.emptied };
  if (mode === "forever") {
    // A lane that can't go on takes the others down with it, but in good order: they hand off what they hold.
    const broken = new AbortController();
    const end = AbortSignal.any([stop, broken.signal]);
    const lane = (how: PullMode) => (queue: Queue) =>
      pullLane(deps, { queue, agent, mode: how, stop: end, pause }, told);
    const pulled = queues.map(lane(mode));
    for (const one of pulled) one.catch((error: unknown) => broken.abort(error));
    const drained = drainLeft(deps, name, lanes, end, lane("drain"));
    void sweep.run(end);
    void keepExpiring(deps, end);
    // Not for the sweep: what it leaves half dispatched is found by the next one.
    await Promise.allSettled(pulled);
    await drained();
    if (broken.signal.aborted) throw broken.signal.reason;
  } else {
    if (mode !== "idle") await sweep.once(stop);
    if (mode === "drain") await expireSome(deps, stop);
    const all = [...queues];
    for (const queue of left) if (await correctLeft(deps, queue)) all.push(queue);
    const lane = (queue: Queue) =>
      pullLane(deps, { queue, agent, mode, stop, seen: seen.get(queue), pause }, told);
    if (mode === "once") for (const queue of all) if (Object.keys(tally).length === 0) await lane(queue);
    // Whoever called this closes the connection: what one lane fails with waits until the others are over.
    const ended = mode === "once" ? [] : await Promise.allSettled(all.map(lane));
    await Promise.all(rescues);
    for (const one of ended) if (one.status === "rejected") throw one.reason;
  }
  await Promise.all(rescues);
  return tally;
}

function sweeper(deps: Deps, agent: string, { limits }: Agent) {
  const { clock, log } = deps;
  let next = 0;
  let last = 0;
  let isEmptied = false;
  let sooner = new AbortController();
  const once = async (stop: AbortSignal) => {
    last = clock.now();
    next = last + SWEEP_EVERY;
    // Where a lane has run empty there is no message to wait for: orphans are looked for while they are young.
    const dispatchTimeout = isEmptied ? EMPTIED : limits.dispatchTimeout;
    isEmptied = false;
    try {
      const dispatched = await dispatchDue(deps, agent, stop, { ...limits, dispatchTimeout });
      if (dispatched > 0) log("info", "due.dispatched", { agent, dispatched });
    } catch (error) {
      log("warn", "due.failed", { agent, reason: messageOf(error) });
    }
    await deps.meter.flush();
  };
  const expect = (dueAt: number) => {
    if (!(dueAt < next)) return;
    next = dueAt;
    sooner.abort();
  };
  return {
    once,
    expect,
    /** A purge leaves tasks without messages, and a lane that is empty. */
    emptied: () => {
      isEmptied = true;
      expect(last + SWEEP_APART);
    },
    run: async (stop: AbortSignal) => {
      while (!stop.aborted) {
        if (clock.now() >= next) await once(stop);
        sooner = new AbortController();
        await clock.sleep(Math.max(1, next - clock.now()), AbortSignal.any([stop, sooner.signal]));
      }
    },
  };
}
