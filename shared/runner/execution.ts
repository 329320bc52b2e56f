import type { Agent } from "../agent.ts";
import type { Arrived } from "../dispatch/arrive.ts";
import type { PawlError } from "../errors/errors.ts";
import type { Trail } from "../journal/trail.ts";
import type { Delivery } from "../ports/bus.ts";
import type { Deps } from "../ports/deps.ts";
import type { Stored } from "../ports/store.ts";
import type { Running } from "../task/document.ts";
import type { Queue } from "../task/names.ts";
import type { Lease } from "./lease.ts";

/** A message as it was pulled, and who is to run it. */
export interface Received {
  readonly delivery: Delivery;
  readonly queue: Queue;
  readonly agent: Agent;
  /** Aborts when the runner is told to stop. */
  readonly stop: AbortSignal;
  /** Asks for the lane's next message while this one is written down and acked. */
  readonly prefetch?: () => void;
}

/** One message in a runner's hands: what every stage of its way is given. */
export interface Execution extends Required<Received> {
  readonly deps: Deps;
  /** What the message says; or why nobody can tell. */
  readonly arrived: Arrived | PawlError;
  /** The runner's lease on the message, and on its task once that is claimed. */
  readonly lease: Lease;
}

/** A task that is running, as it is stored. */
export interface HeldTask extends Stored {
  readonly task: Running;
}

/** An execution whose task is claimed. */
export interface Holding extends Execution {
  readonly held: HeldTask;
  /** Of a replay: goes along the handler's way through its journal, and says where that ends. */
  readonly along?: (path: Trail) => Trail;
  /** The runner was told to stop while it waited for its predecessor, after so many milliseconds: the handler must not begin. */
  readonly waited?: number;
}
