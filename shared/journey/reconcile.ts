import type { QueueState } from "../ports/bus.ts";
import { streamName } from "../task/names.ts";
import type { Deps } from "./deps.ts";
import { queueOf } from "./dispatch.ts";

/** What is in each queue now. */
export async function reconcile(
  deps: Deps,
  agents: readonly { readonly name: string; readonly lanes: number }[],
  stop: AbortSignal,
): Promise<Record<string, QueueState>> {
  const queues = agents.flatMap(({ name, lanes }) =>
    Array.from({ length: lanes }, (_, lane) => queueOf({ agent: name, lane }, deps)),
  );
  const states: Record<string, QueueState> = {};
  for (const queue of queues) {
    if (stop.aborted) break;
    states[streamName(queue)] = await deps.bus.state(queue);
  }
  return states;
}
