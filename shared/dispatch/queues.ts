import { isPawlError } from "../errors/errors.ts";
import { type Pause, pauseOf } from "../pause/pause.ts";
import type { QueueInfo } from "../ports/bus.ts";
import type { Deps } from "../ports/deps.ts";
import { type Queue, streamName } from "../task/names.ts";
import { queueOf } from "./dispatch.ts";

/** How many lanes an agent has. */
interface Laned {
  readonly name: string;
  readonly lanes: number;
}

/** A queue that nothing is published to any more, and its messages: of a lane that went, or an older generation. */
export interface LeftQueue {
  readonly stream: string;
  readonly lane: number;
  readonly generation: number;
  readonly messages: number;
}

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
  /** What was left behind when lanes went or the generation was raised: its runner drains it. Not counted above. */
  readonly left: readonly LeftQueue[];
  /** Set while nothing new of it begins. */
  readonly paused?: Pause;
}

export async function agentQueues(deps: Deps, agents: readonly Laned[]): Promise<AgentQueues[]> {
  const left = await leftQueues(deps, agents);
  return Promise.all(
    agents.map(async ({ name, lanes }) => {
      const own = Array.from({ length: lanes }, (_, lane) =>
        inspected(deps, queueOf(deps, { agent: name, lane })),
      );
      const [paused, ...all] = await Promise.all([pauseSeen(deps, name), ...own]);
      const infos = all.filter((info) => info !== undefined);
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
        left: left.filter(({ queue }) => queue.agent === name).map(({ queue: _, ...one }) => one),
        ...(paused && { paused }),
      };
    }),
  );
}

/** Who may not read it is told of the queues all the same. */
function pauseSeen({ store }: Deps, agent: string): Promise<Pause | undefined> {
  return pauseOf(store, agent).catch((error: unknown) => {
    if (isPawlError(error, "store_refused")) return undefined;
    throw error;
  });
}

/** Queues of these agents that hold messages and get no more. A newer generation's are its own runners' affair. */
export async function leftQueues(
  deps: Pick<Deps, "bus" | "settings">,
  agents: readonly Laned[],
): Promise<(LeftQueue & { readonly queue: Queue })[]> {
  const lanesOf = new Map(agents.map(({ name, lanes }) => [name, lanes]));
  const current = deps.settings.generation;
  const isLeft = ({ agent, lane, generation }: Queue) =>
    lanesOf.has(agent) &&
    (generation < current || (generation === current && lane >= (lanesOf.get(agent) as number)));
  const infos = (await deps.bus.queues()).filter(isLeft).map(async (queue) => {
    const { messages } = (await inspected(deps, queue)) ?? { messages: 0 };
    return { queue, stream: streamName(queue), lane: queue.lane, generation: queue.generation, messages };
  });
  return (await Promise.all(infos)).filter(({ messages }) => messages > 0);
}

/** Messages are there that the consumer neither will deliver nor has under way. */
export function isStranded({ messages, pending, inFlight }: QueueInfo): boolean {
  return messages > pending + inFlight;
}

const LOOKS = 5;
const LOOK_AGAIN_AFTER = 100;

/**
 * What a queue says of itself. Its stream and its consumer answer at different moments: of one that is busy, messages
 * then seem to be stranded. Only what stays so is.
 */
export async function inspectCalmly(
  { bus, clock }: Pick<Deps, "bus" | "clock">,
  queue: Queue,
): Promise<QueueInfo> {
  for (let looks = 1; ; looks++) {
    const info = await bus.inspect(queue);
    if (!isStranded(info) || looks === LOOKS) return info;
    await clock.sleep(LOOK_AGAIN_AFTER);
  }
}

/** Undefined for a queue that does not exist: its agent never ran. */
function inspected(deps: Pick<Deps, "bus">, queue: Queue): Promise<QueueInfo | undefined> {
  return deps.bus.inspect(queue).catch((error: unknown) => {
    if (isPawlError(error, "queue_gone")) return undefined;
    throw error;
  });
}
