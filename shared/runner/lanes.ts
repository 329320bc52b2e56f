import { ensureQueue, queueOf } from "../dispatch/dispatch.ts";
import { leftBehind } from "../dispatch/left-queues.ts";
import { NEVER_PAUSED, type PauseWatch, watchPause } from "../pause/watch.ts";
import type { QueueState } from "../ports/bus.ts";
import type { Deps } from "../ports/deps.ts";
import type { Queue } from "../task/names.ts";
import type { PullMode } from "./pull.ts";

/** An agent's lanes, before anything is pulled from them. */
export interface Lanes {
  readonly queues: readonly Queue[];
  /** Queues that lanes which went have left behind. A runner that stays looks for them itself, again and again. */
  readonly left: readonly Queue[];
  /** What was in them; none where nobody has asked, or could tell. */
  readonly seen: ReadonlyMap<Queue, QueueState>;
  /** Whether their agent is paused: for whoever serves them to close. */
  readonly pause: PauseWatch;
}

/**
 * Makes sure of an agent's queues. For a function that was woken all that it has to know is asked at once: it has nothing
 * else to do, and its deploy has made and corrected what is there, but for what is unsafe by now.
 */
export async function readyLanes(deps: Deps, name: string, lanes: number, mode: PullMode): Promise<Lanes> {
  const queues = Array.from({ length: lanes }, (_, lane) => queueOf(deps, { agent: name, lane }));
  const ensure = async (queue: Queue) => {
    for (const change of await ensureQueue(deps, queue, mode === "idle" ? "create" : "correct"))
      deps.log("info", "queue.ensured", { change });
  };
  if (mode !== "idle") {
    // What all lanes share is made with the first of them.
    for (const some of [queues.slice(0, 1), queues.slice(1)]) await Promise.all(some.map(ensure));
    const left = mode === "forever" ? [] : await leftBehind(deps, name, lanes);
    return { queues, left, seen: new Map(), pause: await watchPause(deps, name) };
  }
  const look = async (queue: Queue) => {
    const state = await deps.bus.state(queue).catch(() => undefined);
    return state ? [[queue, state] as const] : [];
  };
  const looked = Promise.all([leftBehind(deps, name, lanes), Promise.all(queues.map(look))]);
  const [[left, seen]] = await Promise.all([looked, ...queues.map(ensure)]);
  const lanesSeen = { queues, left, seen: new Map(seen.flat()) };
  return { ...lanesSeen, pause: isIdle(lanesSeen) ? NEVER_PAUSED : await watchPause(deps, name) };
}

/** Whoever finds nothing in its queues need not ask whether it may take it. */
function isIdle({ queues, left, seen }: Pick<Lanes, "queues" | "left" | "seen">): boolean {
  return (
    left.length === 0 &&
    queues.every((queue) => seen.get(queue)?.pending === 0 && seen.get(queue)?.inFlight === 0)
  );
}
