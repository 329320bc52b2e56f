import { isPawlError, isUnsound, messageOf, PawlError } from "../errors/errors.ts";
import type { Delivery } from "../ports/bus.ts";
import type { Deps } from "../ports/deps.ts";
import type { Claim, Revision } from "../ports/store.ts";
import { pause } from "../retry/retry.ts";
import { timing } from "../settings/settings.ts";

/**
 * A runner's lease on one message, from its arrival to the last word about it.
 *
 * JetStream can't fence: it honours the heartbeats and acks of a holder whose message it has long given to another.
 * So a beat asks three things in order: postpone my redelivery; am I still the newest delivery; does the document
 * still name my claim. Only all of them together extend the lease, and from the moment the first was sent: a successor
 * writes its claim after that moment, then waits for longer than a lease. Before the claim there is no document to ask;
 * the rest holds all the same, so that a runner that was frozen with a message in its hands wakes up silent.
 *
 * In a cluster all three answers may come from a server that was cut off from its peers and does not know it yet. So
 * where the store's reads may be stale, a beat ends with a write that needs most copies: the claim is attested. The
 * register takes no claim after a later one, and a successor attests its own before it begins to wait. Whatever lease
 * it waits for was extended before that, from a moment before that.
 */
export interface Lease {
  /** Aborts once the message is another's, or can't be proven to be ours. */
  readonly lost: AbortSignal;
  /** Aborts when the document asks its holder to cancel. */
  readonly cancelled: AbortSignal;
  /** Throws `lease_lost`. Compares clocks, so it is right also in a process that was frozen and has just woken. */
  check(): void;
  /** One whole beat now. False when it could not be made whole. */
  beat(): Promise<boolean>;
  /** The claim that was sent at `sentAt` was written: from now on a lease is held under it. */
  grant(claim: Claim, sentAt: Instant): void;
  /**
   * A claim was written at an unknown moment (its answer was lost), or has to be attested: beats until one is whole, and
   * holds a lease from then on. Throws `lease_lost`.
   */
  prove(claim: Claim): Promise<void>;
  /**
   * No more beats, and the last one is over: none can see the holder's own last write and take it for a stranger's, and
   * no +WPI can follow a nak. What is left of the lease outlasts nothing: it ends before a redelivery can begin.
   */
  stopBeats(): Promise<void>;
  /** No longer ours in any way. */
  release(): Promise<void>;
}

/** A reason of one's own: without one, each abort would make an error. */
const STOPPED = "no more heartbeats";

export interface Instant {
  readonly wall: number;
  readonly monotonic: number;
}

export function instant(deps: Pick<Deps, "clock">): Instant {
  return { wall: deps.clock.now(), monotonic: deps.clock.monotonic() };
}

export function takeLease(deps: Deps, delivery: Delivery, taskId: string): Lease {
  const { clock, settings, log } = deps;
  const { beatEvery, leaseTime } = timing(settings);
  const lost = new AbortController();
  const cancelled = new AbortController();
  const stopped = new AbortController();
  let claim: Claim | undefined;
  let attested: Revision | undefined;
  let provenAt: Instant = instant(deps);
  let inFlight: Promise<unknown> = Promise.resolve();

  const lose = (why: string) => {
    if (lost.signal.aborted) return;
    if (claim) log("warn", "lease.lost", { task: taskId, seq: delivery.seq, why });
    lost.abort(new PawlError("lease_lost", `Task ${taskId}: ${why}`));
  };

  const left = (): number => {
    const now = instant(deps);
    return leaseTime - Math.max(now.wall - provenAt.wall, now.monotonic - provenAt.monotonic);
  };

  const check = () => {
    if (left() <= 0) lose(`no whole heartbeat for ${leaseTime} ms`);
    lost.signal.throwIfAborted();
  };

  const beat = async (): Promise<boolean> => {
    check();
    const sentAt = instant(deps);
    try {
      await delivery.working();
      check();
      if (stopped.signal.aborted) return false;
      if (!(await delivery.current())) {
        lose("the message was delivered again");
        return false;
      }
      check();
      if (claim && !stopped.signal.aborted) {
        const { token } = claim;
        const found = await deps.store.get(taskId);
        check();
        const task = found?.task;
        if (stopped.signal.aborted) return false;
        if (task?.state !== "running" || task.token !== token) {
          lose(task ? `the document is ${task.state} under another claim` : "the document is gone");
          return false;
        }
        if (task.cancelRequested) cancelled.abort();
        if (deps.store.attest) {
          attested = await deps.store.attest(claim, attested);
          check();
          if (attested === undefined) {
            lose("a later claim is attested");
            return false;
          }
        }
      }
      provenAt = sentAt;
      return true;
    } catch (error) {
      if (isPawlError(error, "lease_lost")) return false;
      if (isUnsound(error)) {
        lose(error.message);
        return false;
      }
      log("warn", "beat.failed", { task: taskId, seq: delivery.seq, reason: messageOf(error) });
      return false;
    }
  };

  const beats = async () => {
    let wait = beatEvery;
    let isFirst = true;
    while (!stopped.signal.aborted && !lost.signal.aborted) {
      await clock.sleep(wait, stopped.signal);
      if (stopped.signal.aborted || lost.signal.aborted) return;
      // No lease ends before its first beat is due, and most tasks are over by then.
      if (isFirst) void watch();
      isFirst = false;
      const begun = clock.monotonic();
      inFlight = beat().catch(() => false);
      // After a failed one, try again soon: the first moment that the store or the server is back counts.
      wait = (await inFlight)
        ? Math.max(0, beatEvery - (clock.monotonic() - begun))
        : Math.ceil(beatEvery / 8);
    }
  };

  const watch = async () => {
    while (!stopped.signal.aborted && !lost.signal.aborted) {
      await clock.sleep(Math.max(1, left()), stopped.signal);
      if (!stopped.signal.aborted && left() <= 0) lose(`no whole heartbeat for ${leaseTime} ms`);
    }
  };

  let fallSilent = () => {};
  const answer = (held: Claim) => {
    fallSilent = deps.bus.answerFor(held, () => !lost.signal.aborted && left() > 0);
  };

  const stopBeats = async () => {
    stopped.abort(STOPPED);
    await inFlight;
  };

  void beats();

  return {
    lost: lost.signal,
    cancelled: cancelled.signal,
    check,
    beat,
    grant: (written, sentAt) => {
      claim = written;
      provenAt = sentAt;
      answer(written);
    },
    prove: async (written) => {
      claim = written;
      for (let failures = 1; !(await beat()); failures++) {
        check();
        await pause(deps, "store", failures, stopped.signal);
      }
      answer(written);
    },
    stopBeats,
    release: () => {
      fallSilent();
      return stopBeats();
    },
  };
}
