import type { Agent } from "../agent.ts";
import { messageOf, PawlError } from "../errors/errors.ts";
import type { CallKind } from "../journal/entries.ts";
import type { Journal } from "../journal/journal.ts";
import type { Call, How } from "../journal/trail.ts";
import type { Deps } from "../ports/deps.ts";
import type { CallTrace } from "../ports/trace.ts";
import type { Guard } from "../retry/guards.ts";
import type { Running } from "../task/document.ts";
import type { Heard } from "./heard.ts";
import type { Suspension } from "./suspension.ts";

/** One execution, as the calls of its handler see it. */
export interface Scene {
  readonly task: Running;
  readonly agent: Agent;
  readonly journal: Journal;
  readonly signal: AbortSignal;
  readonly deps: Deps;
  /** Throws when this execution may not go on. */
  readonly guard: Guard;
  /** What its handler is told of failures that are in the journal. */
  readonly heard: Heard;
  /** Goes through one call of the handler's: finds it in the journal, and keeps count of what is under way. */
  through<T>(
    kind: CallKind,
    name: string,
    go: (call: Call, trace?: CallTrace) => Promise<T>,
    how?: How,
  ): Promise<T>;
  /** Runs the author's part of a call. */
  within<T>(run: () => T, trace?: CallTrace): T;
  /** The call never settles: to throw would let the handler's own `catch` take it for a failure, and go on. */
  park(why: Suspension): Promise<never>;
}

/** What was thrown, for the journal: without the agent's secrets. */
export function said({ redact }: Pick<Deps, "redact">, error: unknown): string {
  return redact ? redact(messageOf(error)) : messageOf(error);
}

export function wrongCall(call: string, name: unknown, should: string): PawlError {
  return new PawlError("call_invalid", `${call}(${JSON.stringify(name)}, …) needs ${should}`);
}
