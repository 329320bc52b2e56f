import type { QueueInfo } from "../ports/bus.ts";
import { isPawlError } from "../task/errors.ts";
import type { Deps } from "./deps.ts";
import { queueOf } from "./dispatch.ts";

/** An agent and what is in its queues, all lanes together. */
export interface AgentQueues {
  readonly name: string;
  readonly lanes: number;
  readonly pending: number;
  readonly inFlight: number;
  /** Deliveries that are under way for the second time or more. */
  readonly redelivered: number;
  /** Age of the oldest message, in milliseconds; 0 where there is none. */
  readonly oldestAge: number;
}

export async function agentQueues(
  deps: Deps,
  agents: readonly { readonly name: string; readonly lanes: number }[],
): Promise<AgentQueues[]> {
  return Promise.all(
    agents.map(async ({ name, lanes }) => {
      const infos = (await lanesOf(deps, name, lanes)).filter((info) => info !== undefined);
      const sum = (field: "pending" | "inFlight" | "redelivered") =>
        infos.reduce((all, info) => all + info[field], 0);
      const now = deps.clock.now();
      return {
        name,
        lanes,
        pending: sum("pending"),
        inFlight: sum("inFlight"),
        redelivered: sum("redelivered"),
        oldestAge: Math.max(0, ...infos.map(({ oldestAt = now }) => now - oldestAt)),
      };
    }),
  );
}

/** Lane by lane; undefined for one whose queue does not exist: its agent never ran. */
export function lanesOf(deps: Deps, agent: string, lanes: number): Promise<(QueueInfo | undefined)[]> {
  return Promise.all(
    Array.from({ length: lanes }, (_, lane) =>
      deps.bus.inspect(queueOf({ agent, lane }, deps)).catch((error: unknown) => {
        if (isPawlError(error, "bus_refused")) return undefined;
        throw error;
      }),
    ),
  );
}
