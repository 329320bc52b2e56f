import type { Agent, AgentContext } from "../agent.ts";
import { type ErrorCode, isPawlError, messageOf, PawlError, Retry } from "../errors/errors.ts";
import { called, runHandler } from "../handler/awaits.ts";
import { callsOf } from "../handler/calls.ts";
import { heedWitnesses } from "../handler/disowned.ts";
import type { Suspension } from "../handler/suspension.ts";
import { acceptedInput } from "../input.ts";
import { farOf } from "../journal/entries.ts";
import { type Journal, journalReached, openJournal } from "../journal/journal.ts";
import type { Deps } from "../ports/deps.ts";
import { whileHeld } from "../retry/guards.ts";
import { graceOf } from "../settings/settings.ts";
import type { Running, TaskFailure } from "../task/document.ts";
import { byteLength, plainJson } from "../values/json.ts";
import { byJournal, cancelled } from "./by-journal.ts";
import type { Holding } from "./execution.ts";
import { handedOn } from "./invocation.ts";
import type { Lease } from "./lease.ts";
import { journalOf, type Outcome, type Ran } from "./outcome.ts";
import { stackOf } from "./stack.ts";

/** A reason of one's own: without one, each abort would make an error. */
const OVER = "the execution is over";
/** Of all of them: to make one takes down where it was made, and nobody asks. */
const EXECUTION_OVER = new PawlError("execution_over", "This execution of the task is over");

type Ending =
  /** `lingers`: other calls that it had made still run. */
  | { readonly value: unknown; readonly lingers?: boolean }
  | { readonly thrown: unknown; readonly lingers?: boolean }
  | { readonly suspended: Suspension };

/** Runs the handler under the lease. Never throws. */
export async function run(execution: Holding): Promise<Ran> {
  const begun = execution.deps.clock.monotonic();
  const ran = await runHeld(execution);
  return handedOn(execution, ran, execution.deps.clock.monotonic() - begun);
}

async function runHeld(execution: Holding): Promise<Ran> {
  const { deps, agent, lease, stop, waited, along } = execution;
  const { task } = execution.held;
  const before = journalOf(task);
  if (waited !== undefined) return { outcome: { kind: "handOff", ended: false, waited }, journal: before };
  const input = await acceptedInput(agent, task.input);
  if ("problem" in input)
    return {
      outcome: { kind: "failed", error: failure(deps, input.problem, "input"), ended: true },
      journal: await unopened(execution),
    };

  const over = new AbortController();
  const abort = new AbortController();
  const cause = { lease, stop, timedOut: timer(deps, agent.limits.timeout, over.signal) };
  const causes = [lease.lost, lease.cancelled, stop, cause.timedOut];
  const relay = () => abort.abort(causes.find((signal) => signal.aborted)?.reason);
  for (const signal of causes) signal.addEventListener("abort", relay);

  try {
    // Told to stop, or lost, before it began: the handler must not start at all.
    if (!isHeld(lease)) return { outcome: { kind: "abandoned" }, journal: before };
    if (stop.aborted) return { outcome: { kind: "handOff", ended: true }, journal: before };
    const signal = watchful(abort.signal, lease);
    const guard = whileHeld(lease);
    const journal = await openJournal(deps, task, agent.version, guard);
    await heedWitnesses(deps, task, journal, guard);
    const opened = done(journal);
    // The same while the journal was opened: a process that was frozen meanwhile has been succeeded.
    if (!isHeld(lease)) return { outcome: { kind: "abandoned" }, journal: before };
    if (stop.aborted) return { outcome: { kind: "handOff", ended: true }, journal: reached(journal, task) };
    // Asked for while nobody held it, or before its holder died, or while its successor waited. What the journal says
    // of its effects decides whether it may simply be cancelled.
    if (task.cancelRequested || lease.cancelled.aborted)
      return { outcome: cancelled(task, journal, true), journal: reached(journal, task) };
    const given = { deps, task, agent, journal, signal, guard, ...(along && { along }) };
    const { suspended, close, failedOn, ...verbs } = callsOf(given);
    const log: AgentContext<unknown>["log"] = (message, level = "info") => {
      journal.note(deps.redact?.(String(message)) ?? message, level);
      deps.log(level, "agent.log", { task: task.id, message });
    };
    const { id, attempts } = task;
    const { version } = journal;
    const context = {
      id,
      input: input.value,
      attempt: attempts + 1,
      version,
      signal,
      log,
      get traceparent() {
        return traceparentHere(deps, task);
      },
      ...verbs,
    };
    let isFailing = false;
    const handled = execute(agent, context).then(async (end): Promise<Ending> => {
      // A handler that returned is not waited for long if it forgot to await a call. A handler that failed in one branch is
      // over when its other calls are: what they did is stored first, and those that take longer are told to stop.
      const rest = close();
      if (!rest || (await within(deps, rest, over.signal))) return end;
      if (!("thrown" in end)) return { ...end, lingers: true };
      isFailing = true;
      abort.abort(new PawlError("execution_over", "Another call of this handler failed"));
      return (await within(deps, rest, over.signal)) ? end : { ...end, lingers: true };
    });
    const ended = Promise.race([handled, suspended.then((why) => ({ suspended: why }))]);
    const ending = await Promise.race([ended, aborted(abort.signal)]);
    const last = ending ?? (await (isFailing ? handled : Promise.race([ended, grace(deps, over.signal)])));
    close();
    const outcome = classify(deps, last, cause);
    return {
      outcome: byJournal(task, journal, outcome, last && "thrown" in last ? failedOn(last.thrown) : []),
      journal: reached(journal, task),
      isFurther: done(journal) > opened,
    };
  } catch (error) {
    // Only the opening of the journal throws, and what reads it: the handler has not begun, and what it had begun before
    // is not known.
    const outcome = classify(deps, { thrown: error }, { ...cause, isUnopened: true });
    return { outcome, journal: outcome.kind === "abandoned" ? before : await unopened(execution) };
  } finally {
    over.abort(OVER);
    for (const signal of causes) signal.removeEventListener("abort", relay);
    // However it ended, nothing of this execution may go on: not what it forgot to await, nor what ran beside a wait.
    abort.abort(EXECUTION_OVER);
  }
}

/** Of a task that fails before its journal is opened: what holders before paid, and could not say, is said with that. */
async function unopened({ deps, held: { task }, lease }: Holding): Promise<Ran["journal"]> {
  const before = journalOf(task);
  if (task.fresh) return before;
  return journalReached(deps, task, whileHeld(lease)).catch(() => before);
}

/** How much of it need never be done again. */
function done(journal: Journal): number {
  return journal.listed().filter(({ kind }) => kind === "step" || kind === "receipt").length;
}

function reached(journal: Journal, { fresh }: Running): Ran["journal"] {
  const { count: journaled, again, spent, saved } = journal.head();
  const unjournaled = fresh && journal.isUnwritten() && { unjournaled: true };
  return { ...farOf({ journaled, again }), spent, saved, ...unjournaled, ...journal.logs() };
}

/** Of the call that asks, of the execution outside of any; the submitter's own, where nothing is traced here. */
function traceparentHere({ trace }: Deps, task: Running): string | undefined {
  return called().traceparent ?? trace?.traceparent(task) ?? task.meta?.traceparent;
}

async function execute(agent: Agent, context: AgentContext<unknown>): Promise<Ending> {
  try {
    return { value: await runHandler(agent, context) };
  } catch (thrown) {
    return { thrown };
  }
}

function classify(
  deps: Deps,
  ending: Ending | undefined,
  cause: { lease: Lease; stop: AbortSignal; timedOut: AbortSignal; isUnopened?: boolean },
): Outcome {
  if (!isHeld(cause.lease)) return { kind: "abandoned" };
  // The journal knew it first: a later holder has opened it.
  if (ending && "thrown" in ending && isPawlError(ending.thrown, "lease_lost")) return { kind: "abandoned" };
  const ended = ending !== undefined && !("lingers" in ending);
  // What a handler still finished after its signal is a result like any other.
  if (ending && "value" in ending) return completed(deps, ending.value, ended);
  if (ending && "suspended" in ending) return ending.suspended;
  if (cause.lease.cancelled.aborted && !cause.isUnopened) return { kind: "cancelled", ended };
  if (cause.stop.aborted) return { kind: "handOff", ended };
  if (cause.timedOut.aborted) return { kind: "retry", error: failure(deps, cause.timedOut.reason), ended };
  const thrown = ending?.thrown;
  if (isPawlError(thrown) && thrown.disposition !== "retry")
    return { kind: "failed", error: failure(deps, thrown), ended };
  const isTimed = thrown instanceof Retry && Number.isFinite(thrown.after);
  const after = isTimed ? { after: Math.min(Math.max(0, thrown.after), LONGEST_DELAY) } : {};
  return { kind: "retry", error: failure(deps, thrown), ...after, ended };
}

function completed(deps: Deps, value: unknown, ended: boolean): Outcome {
  try {
    const result = value === undefined ? null : plainJson(value, "The result", "result_invalid");
    const bytes = byteLength(JSON.stringify(result));
    const limit = deps.settings.resultLimit;
    if (bytes <= limit) return { kind: "completed", result, ended };
    throw new PawlError(
      "result_too_large",
      `The result has ${bytes} bytes; the limit is ${limit} (PAWL_RESULT_LIMIT)`,
    );
  } catch (error) {
    return { kind: "failed", error: { ...failure(deps, error), phase: "result" }, ended };
  }
}

const MESSAGE_KEPT = 4_000;
/** What is asked for beyond a year is a mistake of units. */
const LONGEST_DELAY = 365 * 86_400_000;

function failure(
  { redact = (text) => text }: Deps,
  error: unknown,
  phase: TaskFailure["phase"] = "handler",
): TaskFailure {
  const code: ErrorCode = isPawlError(error) ? error.code : "handler_failed";
  // Secrets first: what is cut off in the middle of one would not be known again.
  const message = redact(messageOf(error)).slice(0, MESSAGE_KEPT);
  const { stack } = stackOf(error);
  return { code, message, ...(stack !== undefined && { stack: redact(stack) }), phase };
}

/**
 * The signal's own `aborted` lags behind in a process that was frozen: on waking, the handler's timers may fire before
 * the lease's. Asking this one compares the clocks first.
 */
function watchful(signal: AbortSignal, lease: Lease): AbortSignal {
  const current = () => {
    // Where it is lost, this aborts lease.lost, which aborts the signal.
    isHeld(lease);
    return Object.getOwnPropertyDescriptor(AbortSignal.prototype, "aborted")?.get?.call(signal) as boolean;
  };
  return Object.defineProperties(signal, {
    aborted: { get: current },
    throwIfAborted: {
      value: () => {
        if (current()) throw signal.reason;
      },
    },
  });
}

/** Compares clocks. */
function isHeld(lease: Lease): boolean {
  try {
    lease.check();
    return true;
  } catch {
    return false;
  }
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}

async function grace(deps: Deps, over: AbortSignal): Promise<undefined> {
  await deps.clock.sleep(graceOf(deps.settings), over);
}

/** Whether it is over before the grace is. */
function within(deps: Deps, rest: Promise<void>, over: AbortSignal): Promise<boolean> {
  return Promise.race([rest.then(() => true), grace(deps, over).then(() => false)]);
}

function timer(deps: Deps, ms: number | undefined, over: AbortSignal): AbortSignal {
  const timedOut = new AbortController();
  if (ms !== undefined) {
    void deps.clock.sleep(ms, over).then(() => {
      const message = `The handler ran longer than its limit of ${ms} ms`;
      if (!over.aborted) timedOut.abort(new PawlError("task_timeout", message));
    });
  }
  return timedOut.signal;
}
