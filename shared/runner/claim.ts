import type { Arrived } from "../dispatch/arrive.ts";
import { keepConflict, keepUnsound } from "../dispatch/dead-letters.ts";
import { isUnsound, PawlError } from "../errors/errors.ts";
import type { Reached } from "../journal/entries.ts";
import { countSpent, journalReached } from "../journal/journal.ts";
import type { Delivery } from "../ports/bus.ts";
import { type Deps, mark, uniqueToken } from "../ports/deps.ts";
import type { Stored } from "../ports/store.ts";
import { create, readThrough, update, type Written } from "../retry/guarded-write.ts";
import { beforeClaim, type Guard, holding } from "../retry/guards.ts";
import { pause } from "../retry/patience.ts";
import { taskText } from "../seal/seal.ts";
import { timing } from "../settings/settings.ts";
import { adopted, deadLetter, submitted } from "../task/create.ts";
import { type Decision, decide, type SurplusAs } from "../task/decide.ts";
import type { Running, Task, TaskFailure } from "../task/document.ts";
import type { Envelope } from "../task/envelope.ts";
import type { TaskEvent } from "../task/events.ts";
import { successionWait } from "../task/succession.ts";
import { apply } from "../task/transitions.ts";
import type { HandledAs, Recorded, Word } from "./ack.ts";
import { silence } from "./holder-check.ts";
import { lackOfTime } from "./invocation.ts";
import { type Hold, instant } from "./lease.ts";

export interface HeldTask extends Stored {
  readonly task: Running;
}

/** "claimed": run it. "closed": there is nothing to run, and this is the word to the broker. */
export type Claimed =
  | { readonly kind: "claimed"; readonly held: HeldTask }
  | { readonly kind: "closed"; readonly recorded: Recorded };

const closed = (word: Word, as: HandledAs, detail: string): Claimed => ({
  kind: "closed",
  recorded: { word, as, detail },
});

/**
 * From a message to a claim on its task. A document that is not as its last writer left it is not acted upon, and stays
 * as it is, for a person to look at: written again it would look genuine. Its message is kept apart, and the lane goes on.
 */
export async function claim(
  arrived: Arrived,
  delivery: Delivery,
  hold: Hold,
  stop: AbortSignal,
  deps: Deps,
): Promise<Claimed> {
  const guard = beforeClaim(hold, stop, deps);
  try {
    return await claimSound(arrived, delivery, hold, stop, guard, deps);
  } catch (error) {
    if (!isUnsound(error)) throw error;
    if (error.code === "seal_key_unknown" && delivery.deliveries <= mostPutBack(deps))
      return closed({ kind: "nak", delayMs: deps.settings.ackWait }, "other-key", error.message);
    await keepUnsound(arrived, delivery, error, guard, deps);
    return closed({ kind: "ack" }, "dead-letter", error.code);
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
async function claimSound(
  arrived: Arrived,
  delivery: Delivery,
  hold: Hold,
  stop: AbortSignal,
  guard: Guard,
  deps: Deps,
): Promise<Claimed> {
  const { envelope, arrival } = arrived;
  const { crashLimit } = deps.settings;
  let reached: Reached | undefined;
  const decideNow = (task: Task | undefined) =>
    decide(task, arrival, {
      now: deps.clock.now(),
      crashLimit,
      ...(reached && { journaled: reached.journaled }),
    });

  const isSilent = silence(deps, AbortSignal.any([hold.lost, stop]));
  let seen = (await firstSight(arrived, delivery, deps)) ?? (await readThrough(deps, envelope.id, guard));
  for (let rounds = 1; ; rounds++) {
    guard();
    const decision = decideNow(seen?.task);
    let result: Written;
    switch (decision.kind) {
      case "skip":
        await countSkip(seen as Stored, delivery, deps, guard);
        return closed({ kind: "ack" }, "skipped", "its sequence is settled");

      case "later":
        return closed({ kind: "nak", delayMs: decision.ms }, "not-due", `due in ${decision.ms} ms`);

      case "surplus":
        if (decision.outcome === "conflict") await keepConflict(arrived, delivery, guard, deps);
        result = await update(
          deps,
          seen as Stored,
          changeIf(decision, surplus(arrived, decision.outcome)),
          guard,
        );
        if (result.kind === "written") return closed({ kind: "ack" }, "surplus", decision.outcome);
        break;

      case "missing": {
        const expiresAt = deps.clock.now() + deps.settings.retention;
        const lost = deadLetter(envelope, arrival, missing(envelope), expiresAt, mark(deps));
        result = await create(deps, lost, guard);
        if (result.kind === "written") return closed({ kind: "ack" }, "dead-letter", "document_missing");
        break;
      }

      case "crashLoop": {
        if (!reached) {
          reached = await journalReached((seen as Stored).task, guard, deps);
          continue;
        }
        if (!(await isSilent((seen as HeldTask).task))) break;
        if (!(await wholeBeat(hold, rounds, deps))) break;
        const expiresAt = deps.clock.now() + deps.settings.retention;
        const { queue, seq } = delivery;
        const exhaust: TaskEvent = {
          type: "exhaust",
          error: crashLoop(decision.starts),
          queue,
          seq,
          expiresAt,
          reached,
        };
        result = await update(deps, seen as Stored, changeIf(decision, exhaust), guard);
        if (result.kind === "moot") break;
        countSpent((seen as Stored).task, result.stored.task, deps);
        return closed({ kind: "ack" }, "dead-letter", "crash_loop");
      }

      case "create":
      case "claim":
      case "takeover": {
        const tooLong = seen && lackOfTime(seen.task, delivery, deps);
        if (tooLong) return { kind: "closed", recorded: tooLong };
        if (decision.kind === "takeover") {
          if (!(await isSilent((seen as HeldTask).task))) break;
          // This delivery may be stale itself: only the newest one may push a silent holder aside.
          if (!(await wholeBeat(hold, rounds, deps))) break;
        }
        const { lease } = timing(deps.settings);
        const holder = {
          queue: delivery.queue,
          seq: delivery.seq,
          token: uniqueToken(),
          runner: deps.runner,
          via: deps.bus.serverId(),
          lease,
        };
        let sentAt = instant(deps);
        if (decision.kind === "create") {
          result = await create(deps, adopted(envelope, holder, mark(deps)), guard);
        } else {
          const looked = reached && { reached };
          const change = changeIf(decision, { type: decision.kind, ...holder, ...looked });
          result = await update(
            deps,
            seen as Stored,
            (task, own) => {
              sentAt = instant(deps);
              return change(task, own);
            },
            guard,
          );
        }
        if (result.kind === "moot") break;
        if (decision.kind === "takeover") deps.meter.count("takeovers", { agent: envelope.agent });
        const held = mine(result, holder.token);
        if (seen) countSpent(seen.task, held.task, deps);
        // A holder that did not let go could extend its lease while we wait for its end, unless ours is attested first.
        const mustAttest = !held.task.started && deps.store.attest !== undefined;
        if (result.answered && !mustAttest) hold.grant(held.task, sentAt);
        else await hold.prove(held.task);
        return { kind: "claimed", held };
      }
      default:
        return decision satisfies never;
    }
    seen = await readThrough(deps, envelope.id, guard);
  }

  function changeIf(decision: Decision, event: TaskEvent) {
    const outcomeOf = (one: Decision) => ("outcome" in one ? one.outcome : undefined);
    return (task: Task, own: ReturnType<typeof mark>) => {
      const now = decideNow(task);
      const isSame = now.kind === decision.kind && outcomeOf(now) === outcomeOf(decision);
      return isSame ? apply(task, event, own) : undefined;
    };
  }
}

/**
 * A takeover's wait: until no earlier holder can still act, under heartbeats. Then the start is written, so that
 * `executions` counts handlers that really began.
 */
export async function waitForTurn(
  held: HeldTask,
  hold: Hold,
  stop: AbortSignal,
  deps: Deps,
): Promise<HeldTask> {
  if (held.task.started) return held;
  const ms = successionWait(held.task, { now: deps.clock.now(), by: deps.runner });
  const { lease } = timing(deps.settings);
  deps.log("info", "takeover.wait", { task: held.task.id, fence: held.task.fence, ms });
  await deps.clock.sleep(ms, AbortSignal.any([hold.lost, stop]));
  const guard = holding(hold, stop);
  const begun = await update(
    deps,
    held,
    (task, own) => (isMine(task, held.task.token) ? apply(task, { type: "start", lease }, own) : undefined),
    guard,
  );
  return mine(begun, held.task.token);
}

/** What was written, if it still is ours: by the time it is read back somebody else may hold the task. */
function mine(written: Written, token: string): HeldTask {
  if (written.kind === "written" && isMine(written.stored.task, token)) return written.stored as HeldTask;
  throw new PawlError("lease_lost", "The task was taken over while its claim was being written");
}

export function isMine(task: Task, token: string): task is Running {
  return task.state === "running" && task.token === token;
}

/** The document as the submit wrote it, rebuilt from the message: a first claim needs no read. */
async function firstSight(
  { envelope, arrival, revision, seal: own }: Arrived,
  delivery: Delivery,
  { sealer }: Deps,
): Promise<Stored | undefined> {
  if (delivery.redelivered || arrival.dispatch !== 1 || !revision || !envelope.stamp) return undefined;
  const task = submitted(envelope, delivery.queue);
  if (own === undefined) return sealer.acceptsUnsealed ? { task, revision } : undefined;
  // A message that says otherwise than the document did: what is stored decides.
  if (!(await sealer.isGenuine(own, taskText(task, task.id)))) return undefined;
  return { task: { ...task, seal: { own, before: "", stamp: task.stamp } }, revision };
}

async function wholeBeat(hold: Hold, rounds: number, deps: Deps): Promise<boolean> {
  if (await hold.beat()) return true;
  hold.check();
  await pause(deps, rounds);
  return false;
}

/** Made visible where it can be; the sequence is settled either way, so it never stands in the ack's way. */
async function countSkip(seen: Stored, delivery: Delivery, deps: Deps, guard: Guard): Promise<void> {
  const skip: TaskEvent = { type: "skip", queue: delivery.queue, seq: delivery.seq };
  try {
    await update(deps, seen, (task, own) => apply(task, skip, own), guard);
  } catch (error) {
    guard();
    deps.log("warn", "skip.uncounted", { task: seen.task.id, reason: String(error) });
  }
}

function surplus({ arrival }: Arrived, outcome: SurplusAs): TaskEvent {
  return { type: "surplus", queue: arrival.queue, seq: arrival.seq, dispatch: arrival.dispatch, outcome };
}

function missing(envelope: Envelope): TaskFailure {
  return {
    code: "document_missing",
    message: `Task ${envelope.id} was dispatched, but its document is gone: what was already done can't be known`,
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
