import { messageOf } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import { type Queue, streamName } from "../task/names.ts";

/** Said no more often than this: whoever holds a message finds it out at each heartbeat. */
const SAY_EVERY = 60_000;

/**
 * What a runner does when it finds its queue's consumer changed under it, redelivering too soon, say: it says so, and
 * corrects it. Nothing unsafe comes of it meanwhile: a successor asks the holder, and waits out the lease that the
 * document names, whatever the consumer's ack_wait.
 */
export function driftCorrector(deps: Deps, queue: Queue): (drift: string) => void {
  const stream = streamName(queue);
  let saidAt: number | undefined;
  let isMending = false;
  const mend = async (isSaid: boolean) => {
    if (isMending) return;
    isMending = true;
    try {
      for (const change of await deps.bus.ensure(queue, "create"))
        deps.log("info", "queue.ensured", { change });
    } catch (error) {
      if (isSaid) deps.log("error", "queue.uncorrected", { queue: stream, reason: messageOf(error) });
    }
    isMending = false;
  };
  return (drift) => {
    const now = deps.clock.monotonic();
    const isSaid = saidAt === undefined || now - saidAt >= SAY_EVERY;
    if (isSaid) {
      saidAt = now;
      deps.log("error", "queue.drifted", { queue: stream, drift });
    }
    void mend(isSaid);
  };
}
