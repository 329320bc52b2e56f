import type { Agent } from "../agent.ts";
import { isPawlError, messageOf } from "../errors/errors.ts";
import { countSpent } from "../journal/journal.ts";
import { type Deps, expiryOf } from "../ports/deps.ts";
import { update } from "../retry/guarded-write.ts";
import { whileHeld } from "../retry/guards.ts";
import { graceOf } from "../settings/settings.ts";
import type { Running, TaskFailure } from "../task/document.ts";
import { WAIT_OVER } from "../task/ends.ts";
import type { TaskEvent } from "../task/events.ts";
import { apply } from "../task/transitions.ts";
import { backoff } from "../values/backoff.ts";
import type { Recorded } from "./ack.ts";
import { isMine } from "./claim.ts";
import type { Holding } from "./execution.ts";
import type { Outcome, Ran } from "./outcome.ts";

/** Writes down how the execution ended, before the broker hears of it. Only a holder whose lease is good may. */
export async function record(execution: Holding, { outcome, journal }: Ran): Promise<Recorded> {
  const { deps, agent, held, lease } = execution;
  let ending = endingOf(deps, held.task, outcome, agent);
  if (!ending) return { word: { kind: "silent" }, as: "abandoned", detail: "lease lost" };
  await lease.stopBeats();
  const token = held.task.token;
  const write = () =>
    update(
      deps,
      held,
      // A bystander may have moved the revision; the claim's token says whether the task is still ours.
      (task, own) => {
        if (!isMine(task, token)) return undefined;
        if (isAnswered(task, outcome)) ending = answered(deps, outcome);
        return apply({ ...task, ...journal }, (ending as Conclusion).event, own);
      },
      whileHeld(lease),
    );
  const written = await write().catch((error: unknown) => {
    // Signals and history took the room: the work is done, and its dead letter says so.
    if (!isPawlError(error, "document_too_large") || outcome.kind !== "completed") throw error;
    const told = { code: "result_too_large", message: messageOf(error), phase: "result" } as const;
    ending = endingOf(deps, held.task, { kind: "failed", error: told, ended: true }, agent);
    return write();
  });
  if (written.kind === "moot") return { word: { kind: "silent" }, as: "abandoned", detail: "taken over" };
  countSpent(deps, held.task, journal);
  const { event: _, ...recorded } = ending;
  return recorded;
}

interface Conclusion extends Recorded {
  readonly event: TaskEvent;
}

/** What it waits for came while it made ready to wait: whoever sent it saw it running, and woke nobody. */
function isAnswered(task: Running, outcome: Outcome): boolean {
  if (outcome.kind !== "wait" && outcome.kind !== "sleep") return false;
  // A cancel too: nobody else would look before its time is over.
  if (task.cancelRequested) return true;
  return (
    outcome.kind === "wait" &&
    task.signals.slice(outcome.known).some(({ name }) => outcome.waitingFor.includes(name))
  );
}

function answered(deps: Deps, outcome: Outcome): Conclusion {
  const lingers = lingering(deps, outcome as { lingers?: boolean });
  return {
    event: { type: "handOff", ended: lingers.lingers === undefined, ...lingers, note: WAIT_OVER },
    word: { kind: "nak", delayMs: 0 },
    as: "handed-off",
    detail: WAIT_OVER,
  };
}

function endingOf(deps: Deps, task: Running, outcome: Outcome, agent: Agent): Conclusion | undefined {
  const now = deps.clock.now();
  const expiresAt = expiryOf(deps, now);
  const ack = { kind: "ack" } as const;
  switch (outcome.kind) {
    case "completed":
      return { event: { type: "complete", result: outcome.result, expiresAt }, word: ack, as: "completed" };
    case "failed": {
      const { error, ended } = outcome;
      const countsAttempt = error.phase === "handler" || error.phase === "result";
      return {
        event: { type: "fail", error, countsAttempt, ended, expiresAt },
        word: ack,
        as: "failed",
        detail: told(error),
      };
    }
    case "retry": {
      const { error, ended } = outcome;
      const failures = task.attempts + 1;
      const { first, longest } = agent.limits.backoff;
      if (failures >= agent.limits.attempts) {
        const last = exhausted(failures, error);
        return {
          event: { type: "fail", error: last, countsAttempt: true, ended, expiresAt },
          word: ack,
          as: "failed",
          detail: told(last),
        };
      }
      const delay = outcome.after ?? backoff(failures, Math.random(), first, longest);
      if (agent.limits.order === "strict") {
        return {
          event: { type: "hold", error, dueAt: now + delay, ended },
          word: { kind: "nak", delayMs: delay },
          as: "retry",
          detail: `in place in ${delay} ms, after ${told(error)}`,
        };
      }
      return {
        event: { type: "retry", error, dueAt: now + delay, ended },
        word: ack,
        as: "retry",
        detail: `in ${delay} ms, after ${told(error)}`,
        dueAt: now + delay,
      };
    }
    case "handOff": {
      const { kind, ...more } = outcome;
      const event = { type: kind, ...more };
      if (outcome.renewed) return { event, word: ack, as: "handed-off", dueAt: now };
      return { event, word: { kind: "nak", delayMs: 0 }, as: "handed-off" };
    }
    case "sleep": {
      const { dueAt } = outcome;
      return {
        event: { type: "sleep", dueAt, ...lingering(deps, outcome) },
        word: ack,
        as: "sleeping",
        dueAt,
      };
    }
    case "wait": {
      const { kind, known: _, lingers: __, ...waits } = outcome;
      const due = outcome.dueAt !== undefined && { dueAt: outcome.dueAt };
      return {
        event: { type: kind, ...waits, ...lingering(deps, outcome) },
        word: ack,
        as: "waiting",
        detail: outcome.waitingFor.join(", "),
        ...due,
      };
    }
    case "doubt": {
      const { effect, tries, ended = true } = outcome;
      return { event: { type: "doubt", effect, tries, ended }, word: ack, as: "in-doubt", detail: effect };
    }
    case "cancelled":
      return { event: { type: "cancel", ended: outcome.ended, expiresAt }, word: ack, as: "cancelled" };
    case "abandoned":
      return undefined;
    default:
      return outcome satisfies never;
  }
}

/** As long as code that is told to stop may take anywhere. */
function lingering({ settings }: Deps, { lingers }: { readonly lingers?: boolean }): { lingers?: number } {
  return lingers ? { lingers: graceOf(settings) } : {};
}

function exhausted(failures: number, last: TaskFailure): TaskFailure {
  return {
    ...last,
    code: "attempts_exhausted",
    message: `Failed ${failures} times, at last: ${last.message}`,
  };
}

/** For the log: what went wrong and where, in one line. */
function told({ code, message, stack }: TaskFailure): string {
  return `${code}: ${message.slice(0, 300)}${stack ? ` (${stack.trim().split("\n")[0]})` : ""}`;
}
