import type { QueueState } from "../ports/bus.ts";
import { isPawlError } from "../task/errors.ts";
import { streamName } from "../task/names.ts";
import type { Deps } from "./deps.ts";
import { queueOf } from "./dispatch.ts";

/** What is in each queue now. */
export async function reconcile(
  deps: Deps,
  agents: readonly { readonly name: string; readonly lanes: number }[],
  stop: AbortSignal,
): Promise<Record<string, QueueState | "missing">> {
  const queues = agents.flatMap(({ name, lanes }) =>
    Array.from({ length: lanes }, (_, lane) => queueOf({ agent: name, lane }, deps)),
  );
  const states: Record<string, QueueState | "missing"> = {};
  for (const queue of queues) {
    if (stop.aborted) break;
    states[streamName(queue)] = await deps.bus.state(queue).catch((error: unknown) => {
      // Of an agent that never ran.
      if (isPawlError(error, "bus_refused")) return "missing" as const;
      throw error;
    });
  }
  return states;
}
