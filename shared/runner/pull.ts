import type { Agent } from "../agent.ts";
import { isPawlError, messageOf } from "../errors/errors.ts";
import type { PauseWatch } from "../pause/watch.ts";
import type { Delivery, Pull, QueueState } from "../ports/bus.ts";
import type { Deps } from "../ports/deps.ts";
import { pause, retry } from "../retry/retry.ts";
import { trouble } from "../retry/trouble.ts";
import { type Queue, streamName } from "../task/names.ts";
import { type Handled, handle } from "./handle.ts";
import { driftCorrector } from "./queue-drift.ts";

/**
 * "once": at most one message. "drain": until the queue is empty. "idle": until there is nothing to take, which may be
 * because another runner holds the lane. "forever": until told to stop.
 */
export type PullMode = "once" | "drain" | "idle" | "forever";

/** A lost pull (its server restarted) costs at most this much idling. */
const PULL_WAIT = 5_000;
const DRAIN_WAIT = 1_000;
/** A lane that was worked on and has brought nothing for so long has run empty. */
export const EMPTIED = 10_000;

export interface Lane {
  readonly queue: Queue;
  readonly agent: Agent;
  readonly mode: PullMode;
  readonly stop: AbortSignal;
  /** What was in the queue a moment ago, where somebody has looked. */
  readonly seen?: QueueState | undefined;
  /** While its agent is paused nothing is pulled. */
  readonly pause: PauseWatch;
}

/** What a lane tells whoever serves it. */
export interface Told {
  handled(handled: Handled): void;
  /** Once, after the last message, or after the start. */
  emptied(): void;
}

/**
 * One lane, one message at a time. While the last ack is under way the next pull already waits at the server, unless
 * this is about to end: a pull that nobody waits for could take a message along. A function looks into its queue when it
 * has taken all that it saw there.
 */
export async function pullLane(deps: Deps, lane: Lane, told: Told): Promise<void> {
  const { queue, agent, mode, stop, pause: gate } = lane;
  let { seen } = lane;
  let waiting: Pull | undefined;
  let workedAt: number | undefined = deps.clock.monotonic();
  const away = trouble(deps);
  const drifted = driftCorrector(deps, queue);
  const pull = () => deps.bus.pull(queue, mode === "forever" ? PULL_WAIT : DRAIN_WAIT, drifted);
  const withdraw = () => void waiting?.cancel();
  stop.addEventListener("abort", withdraw);
  // What is on its way by then is run: put back, it would have spent a delivery.
  const unwatch = gate.onPause(withdraw);
  try {
    for (let failures = 0; !stop.aborted; ) {
      if (gate.isPaused() && !waiting) {
        if (mode !== "forever") break;
        await gate.untilResumed(stop);
        continue;
      }
      if (mode !== "forever") {
        seen ??= await stateOf(deps, queue);
        if (seen?.pending === 0 && seen.inFlight === 0) break;
      }
      waiting ??= pull();
      const pulled = await waiting.delivery.then(
        (delivery) => ({ delivery }),
        (error: unknown) => {
          // A server that is too old may be replaced, or a reconnect lead to another.
          if (!isPawlError(error, "bus_unavailable") && !isPawlError(error, "server_too_old")) throw error;
          away.met("pull.failed", { queue: streamName(queue), reason: messageOf(error) });
        },
      );
      waiting = undefined;
      const { pending = 0 } = seen ?? {};
      seen =
        mode === "idle" && pulled?.delivery && pending > 1
          ? { pending: pending - 1, inFlight: 0 }
          : undefined;
      if (!pulled) {
        await pause(deps, "pull", ++failures, stop);
        continue;
      }
      away.over("pull.back", { queue: streamName(queue) });
      failures = 0;
      const { delivery } = pulled;
      if (!delivery) {
        if (mode === "idle") break;
        if (workedAt !== undefined && deps.clock.monotonic() - workedAt >= EMPTIED) {
          workedAt = undefined;
          told.emptied();
        }
        continue;
      }
      if (stop.aborted) {
        await putBack(delivery);
        break;
      }
      const prefetch = () => {
        if ((mode === "forever" || seen) && !stop.aborted && !gate.isPaused()) waiting ??= pull();
      };
      const handled = await handle(deps, { delivery, queue, agent, stop, prefetch });
      told.handled(handled);
      if (handled.as === "store-away") await untilStoreAnswers(deps, mode, stop);
      workedAt = deps.clock.monotonic();
      // Put back, it would come again at once.
      if (mode === "once" || handled.as === "too-short") break;
    }
  } finally {
    stop.removeEventListener("abort", withdraw);
    unwatch();
    await waiting?.cancel();
    // Served while the last ack was under way.
    const late = await waiting?.delivery.catch(() => undefined);
    if (late) await putBack(late);
  }
}

const PROBE = "probe";

/**
 * Nothing is pulled that could not be claimed. An invocation ends with the store's error; a process says how long it
 * has lasted, and waits.
 */
async function untilStoreAnswers(deps: Deps, mode: PullMode, stop: AbortSignal): Promise<void> {
  const since = deps.clock.monotonic();
  const isAway = (error: unknown) => {
    const seconds = Math.round((deps.clock.monotonic() - since) / 1_000);
    deps.log("error", "store.away", { store: deps.store.name, seconds, reason: messageOf(error) });
  };
  try {
    const mayPass = () => mode !== "idle";
    await retry(deps, "probe", () => deps.store.getRecord(PROBE), { mayPass, failed: isAway, stop });
    deps.log("info", "store.back", { store: deps.store.name });
  } catch (error) {
    if (!stop.aborted) throw error;
  }
}

/** Withdrawn too late. If this process slept since, the message is another's by now. */
async function putBack(delivery: Delivery): Promise<void> {
  if (await delivery.current().catch(() => false)) await delivery.nak(0).catch(() => {});
}

/** Undefined where nobody can tell now. */
async function stateOf(deps: Deps, queue: Queue): Promise<QueueState | undefined> {
  try {
    return await deps.bus.state(queue);
  } catch (error) {
    if (isPawlError(error, "bus_unavailable")) return undefined;
    throw error;
  }
}
