import { isPawlError, messageOf } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import { type Queue, streamName } from "../task/names.ts";
import { ensureQueue } from "./dispatch.ts";
import { leftQueues } from "./queues.ts";

const LOOK_EVERY = 60_000;

/**
 * Queues that lanes which went, or an older generation, left behind with messages in them: no lane of the agent pulls
 * from these. Said in the log each time until they are empty.
 */
export async function leftBehind(deps: Deps, name: string, lanes: number): Promise<Queue[]> {
  try {
    const left = await leftQueues(deps, [{ name, lanes }]);
    for (const { stream, lane, messages } of left)
      deps.log("warn", "lanes.left", { agent: name, queue: stream, lane, messages });
    return left.map(({ queue }) => queue);
  } catch (error) {
    deps.log("warn", "lanes.unseen", { agent: name, reason: messageOf(error) });
    return [];
  }
}

/**
 * Its consumer was made with the settings of its time. What can't be corrected is drained as it is. False for a queue
 * that belongs to another store: its messages would become dead letters.
 */
export async function correctLeft(deps: Deps, queue: Queue): Promise<boolean> {
  try {
    for (const change of await ensureQueue(deps, queue, "correct"))
      deps.log("info", "queue.ensured", { change });
    return true;
  } catch (error) {
    deps.log("warn", "lanes.uncorrected", { queue: streamName(queue), reason: messageOf(error) });
    return !isPawlError(error, "stores_differ");
  }
}

/** Drains what is left behind, and looks again, until told to stop. Returns what waits for drains that are under way. */
export function drainLeft(
  deps: Deps,
  name: string,
  lanes: number,
  stop: AbortSignal,
  drain: (queue: Queue) => Promise<void>,
): () => Promise<void> {
  const underWay = new Map<string, Promise<void>>();
  const begin = async (queue: Queue) => {
    const stream = streamName(queue);
    try {
      if (await correctLeft(deps, queue)) await drain(queue);
    } catch (error) {
      // The agent's own lanes go on; this one is tried again at the next look.
      deps.log("warn", "lanes.undrained", { agent: name, queue: stream, reason: messageOf(error) });
    } finally {
      underWay.delete(stream);
    }
  };
  const look = async () => {
    while (!stop.aborted) {
      for (const queue of await leftBehind(deps, name, lanes))
        if (!stop.aborted && !underWay.has(streamName(queue))) underWay.set(streamName(queue), begin(queue));
      await deps.clock.sleep(LOOK_EVERY, stop);
    }
  };
  void look();
  return async () => void (await Promise.all(underWay.values()));
}
