import type { Settings } from "../settings/settings.ts";
import type { Millis } from "../task/document.ts";
import type { Mark } from "../task/events.ts";
import type { Redact } from "../values/redact.ts";
import { type Actor, sayActor } from "./actor.ts";
import type { Bus } from "./bus.ts";
import type { Clock } from "./clock.ts";
import type { DeltaHolder, DeltaListener } from "./deltas.ts";
import type { Log } from "./log.ts";
import type { Meter } from "./meter.ts";
import type { Model } from "./model.ts";
import type { Notify } from "./notify.ts";
import type { Sealer } from "./sealer.ts";
import type { TaskStore } from "./store.ts";
import type { Trace } from "./trace.ts";

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
  /** On whose behalf: histories name them instead. None for what Pawl does of its own accord. */
  readonly actor?: Actor;
  /** How many lanes an agent of this project has; undefined if there is none of that name. */
  readonly lanesOf?: (agent: string) => number | undefined;
  /** Agents that this process's identity at NATS reaches, its own first; undefined where it reaches all. */
  readonly reaches?: readonly string[];
  readonly meter: Meter;
  /** Tells a tracing backend what tasks go through; none where there is none to tell. */
  readonly trace?: Trace;
  /** For what the store does not seal by itself. */
  readonly sealer: Sealer;
  readonly model?: Model;
  /** Lets whoever asks read a turn of the model while it runs. */
  readonly tells?: DeltaHolder;
  /** Asks for that. */
  readonly hears?: DeltaListener;
  /** Tells people of what failed, is in doubt, or waits for them. */
  readonly notify?: Notify;
  /** None in a process that runs for as long as it likes. */
  readonly invocation?: Invocation;
  /** Takes secrets out of what a handler said when it failed, before that is stored. */
  readonly redact?: Redact;
  /** Tells the agent's function that there is something in its queue, without waiting for it. */
  readonly trigger?: (agent: string) => void;
}

export function uniqueToken(): string {
  return crypto.randomUUID();
}

export function mark(deps: Pick<Deps, "clock" | "runner" | "actor" | "notify">): Mark {
  const tells = deps.notify !== undefined;
  const by = deps.actor ? sayActor(deps.actor) : deps.runner;
  return { now: deps.clock.now(), stamp: uniqueToken(), by, tells };
}

/** When a task that ends now, or at that moment, may be removed. */
export function expiryOf(
  { clock, settings }: Pick<Deps, "clock" | "settings">,
  endedAt = clock.now(),
): Millis {
  return endedAt + settings.retention;
}
