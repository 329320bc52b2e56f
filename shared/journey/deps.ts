import type { Bus } from "../ports/bus.ts";
import type { Clock } from "../ports/clock.ts";
import type { Log } from "../ports/log.ts";
import type { Meter } from "../ports/meter.ts";
import type { Model } from "../ports/model.ts";
import type { Notify } from "../ports/notify.ts";
import type { Sealer } from "../ports/sealer.ts";
import type { TaskStore } from "../ports/store.ts";
import { backoff } from "../task/backoff.ts";
import { isPawlError, messageOf, PawlError } from "../task/errors.ts";
import type { Mark } from "../task/events.ts";
import type { Settings } from "../task/settings.ts";
import { trouble } from "./trouble.ts";

/** A platform's invocation, which has an end. */
export interface Invocation {
  /** How long until it is told to stop, in milliseconds. */
  left(): number;
  /** The longest that one of this function has. */
  readonly longest: number;
}

/** What every journey is given. Only functions/ and infra/ choose what is behind the ports. */
export interface Deps {
  readonly store: TaskStore;
  readonly bus: Bus;
  readonly clock: Clock;
  readonly log: Log;
  readonly settings: Settings;
  /** Who writes: in histories, and on running documents. */
  readonly runner: string;
  /** How many lanes an agent of this project has; undefined if there is none of that name. */
  readonly lanesOf?: (agent: string) => number | undefined;
  readonly meter: Meter;
  /** For what the store does not seal by itself. */
  readonly sealer: Sealer;
  readonly model?: Model;
  /** Tells people of what failed, is in doubt, or waits for them. */
  readonly notify?: Notify;
  /** None in a process that runs for as long as it likes. */
  readonly invocation?: Invocation;
  /** Tells the agent's function that there is something in its queue, without waiting for it. */
  readonly wake?: (agent: string) => void;
}

export function uniqueToken(): string {
  return crypto.randomUUID();
}

export function mark(deps: Pick<Deps, "clock" | "runner" | "notify">): Mark {
  const tells = deps.notify !== undefined;
  return { now: deps.clock.now(), stamp: uniqueToken(), by: deps.runner, tells };
}

/** Pauses between tries of something that is away: 50 ms, doubling to 2 s. */
export function pause(deps: Pick<Deps, "clock">, failures: number, signal?: AbortSignal): Promise<void> {
  return deps.clock.sleep(backoff(failures, Math.random(), 50, 2_000), signal);
}

/** For those who hold no message and whose caller waits: long enough for a client to warm up or a server to come back. */
export const PATIENCE = 15_000;

/** Tries again for as long as the patience lasts, after errors that may pass: a cluster that is choosing its leader, say. */
export async function patiently<T>(
  deps: Pick<Deps, "clock" | "log">,
  passing: "bus_unavailable" | "store_unavailable",
  work: () => Promise<T>,
): Promise<T> {
  const until = deps.clock.monotonic() + PATIENCE;
  const away = trouble(deps);
  for (let failures = 1; ; failures++) {
    try {
      return await work();
    } catch (error) {
      if (!isPawlError(error, passing) || deps.clock.monotonic() > until) throw error;
      away.met(passing.replace("_", "."), { reason: messageOf(error) });
      await pause(deps, failures);
    }
  }
}

/** Throws once the patience is over, with the last reason. In a dispatch, repeated tries are counted with its phase. */
export function whilePatient(
  deps: Pick<Deps, "clock" | "meter">,
  what: string,
  dispatch?: { readonly agent: string; readonly phase: "dispatched_write" | "rollback_write" },
): (() => void) & { retried: (why: unknown) => void } {
  const until = deps.clock.monotonic() + PATIENCE;
  let last: unknown;
  const guard = () => {
    if (deps.clock.monotonic() < until) return;
    const why = last === undefined ? "somebody else was always faster" : messageOf(last);
    const message = `${what}: not stored after trying for ${PATIENCE / 1_000} s. The last reason: ${why}`;
    throw new PawlError("store_unavailable", message, { cause: last });
  };
  const retried = (why: unknown) => {
    last = why;
    if (dispatch) deps.meter.count("publish_retries", { agent: dispatch.agent, phase: dispatch.phase });
  };
  return Object.assign(guard, { retried });
}
