import type { Arrived } from "../dispatch/arrive.ts";
import { isApart, keepConflict, keepUnsound } from "../dispatch/dead-letters.ts";
import { isPawlError, isUnsound, PawlError } from "../errors/errors.ts";
import type { Reached } from "../journal/entries.ts";
import { countSpent, journalReached } from "../journal/journal.ts";
import { type Deps, expiryOf, mark, uniqueToken } from "../ports/deps.ts";
import type { Stored } from "../ports/store.ts";
import { create, readThrough, update, type Written } from "../retry/guarded-write.ts";
import { beforeClaim, type Guard, whileHeld } from "../retry/guards.ts";
import { pause } from "../retry/retry.ts";
import { taskText } from "../seal/seal.ts";
import { timing } from "../settings/settings.ts";
import { adopted, deadLetter, submitted } from "../task/create.ts";
import { type Decision, decide } from "../task/decide.ts";
import type { Running, Task, TaskFailure } from "../task/document.ts";
import { progressOf } from "../task/endings.ts";
import type { TaskEvent } from "../task/events.ts";
import { holderToken } from "../task/names.ts";
import { successionWait } from "../task/succession.ts";
import { apply } from "../task/transitions.ts";
import type { HandledAs, Recorded, Word } from "./ack.ts";
import type { Execution, HeldTask, Holding } from "./execution.ts";
import { holderCheck } from "./holder-check.ts";
import { lackOfTime } from "./invocation.ts";
import { instant } from "./lease.ts";

/** "claimed": run it. "closed": there is nothing to run, and this is the word to the broker. */
export type Claimed =
  | { readonly kind: "claimed"; readonly holding: Holding }
  | { readonly kind: "closed"; readonly recorded: Recorded };

const closed = (word: Word, as: HandledAs, detail: string): Claimed => ({
  kind: "closed",
  recorded: { word, as, detail },
});
const ACK: Word = { kind: "ack" };

/**
 * From a message to a claim on its task. A document that is not as its last writer left it is not acted upon, and stays
 * as it is, for a person to look at: written again it would look genuine. Its message is kept apart, and the lane goes on.
 */
export async function claim(execution: Execution, arrived: Arrived): Promise<Claimed> {
  const { deps, delivery, lease, stop } = execution;
  const guard = beforeClaim(deps, lease, stop);
  try {
    return await claimSound(execution, arrived, guard);
  } catch (error) {
    if (!isUnsound(error)) throw error;
    if (error.code === "seal_key_unknown" && delivery.deliveries <= mostPutBack(deps))
      return closed({ kind: "nak", delayMs: deps.settings.ackWait }, "other-key", error.message);
    await keepUnsound(deps, { arrived, delivery, guard }, error);
    return closed(ACK, "dead-letter", error.code);
  }
}

/** A runner with the wrong keys must not bury what another one would run; nor may a made-up document stop a lane for good. */
function mostPutBack({ settings }: Deps): number {
  return Math.min(20, settings.maxDeliver / 2);
}

/**
 * Every write is guarded by what was seen, so of two runners that come here with the same message one is refused and
 * decides again on what the other wrote.
 */
async function claimSound(execution: Execution, arrived: Arrived, guard: Guard): Promise<Claimed> {
  const { deps, delivery, lease, stop } = execution;
  const { envelope, arrival } = arrived;
  const { queue, seq } = delivery;
  const isSilent = holderCheck(deps, () => AbortSignal.any([lease.lost, stop]));
  // As the message came. To ask after a silent holder takes its time too, in every invocation: it is part of the wait.
  const timeLeft = deps.invocation?.left();
  let reached: Reached | undefined;
  let rounds = 0;

  const decideNow = <S extends { readonly task: Task }>(seen: S | undefined) =>
    decide(seen, arrival, {
      now: deps.clock.now(),
      crashLimit: deps.settings.crashLimit,
      ...(reached && { progress: progressOf(reached) }),
    });

  /** Writes the event, if what is there then still means the same. */
  const writeIf = (decision: Extract<Decision<Stored>, { seen: Stored }>, event: () => TaskEvent) =>
    update(
      deps,
      decision.seen,
      (task, own) => (isSame(decideNow({ task }), decision) ? apply(task, event(), own) : undefined),
      guard,
    );

  /** Only the newest delivery may push a silent holder aside, and this one may be stale itself. */
  const mayReplace = async (task: Running): Promise<boolean> =>
    (await isSilent(task)) && (await wholeBeat(execution, rounds));

  /** Undefined: what is there is no longer what was decided upon. */
  const act = async (decision: Decision<Stored>): Promise<Claimed | undefined> => {
    switch (decision.kind) {
      case "skip":
        await countSkip(execution, decision.seen, guard);
        return closed(ACK, "skipped", "its sequence is settled");

      case "later":
        return closed({ kind: "nak", delayMs: decision.ms }, "not-due", `due in ${decision.ms} ms`);

      case "surplus": {
        const { outcome } = decision;
        if (outcome === "conflict") await keepConflict(deps, { arrived, delivery, guard });
        if (isApart(deps, decision.seen.task, arrival.agent)) return closed(ACK, "surplus", outcome);
        const { dispatch } = arrival;
        const written = await writeIf(decision, () => ({ type: "surplus", queue, seq, dispatch, outcome }));
        return written.kind === "written" ? closed(ACK, "surplus", outcome) : undefined;
      }

      case "missing": {
        const lost = deadLetter(envelope, arrival, missing(envelope.id), expiryOf(deps), mark(deps));
        const { kind } = await create(deps, lost, guard);
        return kind === "written" ? closed(ACK, "dead-letter", "document_missing") : undefined;
      }

      case "crashLoop": {
        const { task } = decision.seen;
        if (!reached) {
          reached = await journalReached(deps, task, guard);
          return act(decideNow(decision.seen));
        }
        if (!(await mayReplace(task))) return undefined;
        const exhaust = { type: "exhaust", error: crashLoop(decision.starts), queue, seq, reached } as const;
        const written = await writeIf(decision, () => ({ ...exhaust, expiresAt: expiryOf(deps) }));
        if (written.kind === "moot") return undefined;
        countSpent(deps, task, written.stored.task);
        return closed(ACK, "dead-letter", "crash_loop");
      }

      case "create":
      case "claim":
      case "takeover":
        return take(decision);
      default:
        return decision satisfies never;
    }
  };

  const take = async (
    decision: Extract<Decision<Stored>, { kind: "create" | "claim" | "takeover" }>,
  ): Promise<Claimed | undefined> => {
    const before = decision.kind === "create" ? undefined : decision.seen.task;
    const tooLong = before && lackOfTime(deps, before, delivery, timeLeft);
    if (tooLong) return { kind: "closed", recorded: tooLong };
    if (decision.kind === "takeover" && !(await mayReplace(decision.seen.task))) return undefined;
    const holder = {
      queue,
      seq,
      token: holderToken(deps.runner, uniqueToken()),
      runner: deps.runner,
      via: deps.bus.serverId(),
      lease: timing(deps.settings).leaseTime,
    };
    let sentAt = instant(deps);
    let written: Written;
    if (decision.kind === "create") {
      written = await create(deps, adopted(envelope, holder, mark(deps)), guard);
    } else {
      written = await writeIf(decision, () => {
        sentAt = instant(deps);
        return { type: decision.kind, ...holder, ...(reached && { reached }) };
      });
    }
    if (written.kind === "moot") return undefined;
    if (decision.kind === "takeover") deps.meter.count("takeovers", { agent: envelope.agent });
    const held = mine(written, holder.token);
    if (before) countSpent(deps, before, held.task);
    // A holder that did not let go could extend its lease while we wait for its end, unless ours is attested first.
    const mustAttest = !held.task.started && deps.store.attest !== undefined;
    if (written.answered && !mustAttest) lease.grant(held.task, sentAt);
    else await lease.prove(held.task);
    return { kind: "claimed", holding: { ...execution, held } };
  };

  for (let seen = await firstSight(execution, arrived); ; seen = undefined) {
    seen ??= await readThrough(deps, envelope.id, guard);
    guard();
    rounds++;
    const claimed = await act(decideNow(seen));
    if (claimed) return claimed;
  }
}

/** Whether a decision on what is there now means the same as the one before. */
function isSame(now: Decision, before: Decision): boolean {
  const outcomeOf = (one: Decision) => ("outcome" in one ? one.outcome : undefined);
  return now.kind === before.kind && outcomeOf(now) === outcomeOf(before);
}

/**
 * A takeover's wait: until no earlier holder can still act, under heartbeats. Then the start is written, so that
 * `executions` counts handlers that really began.
 */
export async function waitForPredecessor(execution: Holding): Promise<Holding> {
  const { deps, held, lease, stop } = execution;
  const { task } = held;
  if (task.started) return execution;
  const since = deps.clock.monotonic();
  try {
    const ms = successionWait(task, { now: deps.clock.now(), by: deps.runner });
    deps.log("info", "takeover.wait", { task: task.id, fence: task.fence, ms });
    await deps.clock.sleep(ms, AbortSignal.any([lease.lost, stop]));
    const start: TaskEvent = { type: "start", lease: timing(deps.settings).leaseTime };
    const begun = await update(
      deps,
      held,
      (there, own) => (isMine(there, task.token) ? apply(there, start, own) : undefined),
      whileHeld(lease, stop),
    );
    return { ...execution, held: mine(begun, task.token) };
  } catch (error) {
    // The holder before may still act, so this is no release.
    if (!stop.aborted || isPawlError(error, "lease_lost")) throw error;
    return { ...execution, waited: Math.floor(deps.clock.monotonic() - since) };
  }
}

/** What was written, if it still is ours: by the time it is read back somebody else may hold the task. */
function mine(written: Written, token: string): HeldTask {
  if (written.kind === "written") {
    const { task, revision } = written.stored;
    if (isMine(task, token)) return { task, revision };
  }
  throw new PawlError("lease_lost", "The task was taken over while its claim was being written");
}

export function isMine(task: Task, token: string): task is Running {
  return task.state === "running" && task.token === token;
}

/** The document as the submit wrote it, rebuilt from the message: a first claim needs no read. */
async function firstSight(
  { deps: { sealer }, delivery }: Execution,
  { envelope, arrival, revision, seal: own }: Arrived,
): Promise<Stored | undefined> {
  if (delivery.redelivered || arrival.dispatch !== 1 || !revision || !envelope.stamp) return undefined;
  const task = submitted(envelope, delivery.queue);
  if (own === undefined) return sealer.acceptsUnsealed ? { task, revision } : undefined;
  // A message that says otherwise than the document did: what is stored decides.
  if (!sealer.isGenuine(own, taskText(task, task.id))) return undefined;
  return { task: { ...task, seal: { own, before: "", stamp: task.stamp } }, revision };
}

async function wholeBeat({ deps, lease }: Execution, rounds: number): Promise<boolean> {
  if (await lease.beat()) return true;
  lease.check();
  await pause(deps, "bystander", rounds);
  return false;
}

/** Made visible where it can be; the sequence is settled either way, so it never stands in the ack's way. */
async function countSkip({ deps, delivery }: Execution, seen: Stored, guard: Guard): Promise<void> {
  const skip: TaskEvent = { type: "skip", queue: delivery.queue, seq: delivery.seq };
  try {
    await update(deps, seen, (task, own) => apply(task, skip, own), guard);
  } catch (error) {
    guard();
    deps.log("warn", "skip.uncounted", { task: seen.task.id, reason: String(error) });
  }
}

function missing(id: string): TaskFailure {
  return {
    code: "document_missing",
    message: `Task ${id} was dispatched, but its document is gone: what was already done can't be known`,
    phase: "delivery",
  };
}

function crashLoop(starts: number): TaskFailure {
  return {
    code: "crash_loop",
    message: `The handler was started ${starts} times in a row and its process died each time`,
    phase: "delivery",
  };
}
