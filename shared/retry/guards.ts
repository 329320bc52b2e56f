import { PawlError } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import { timing } from "../settings/settings.ts";

/**
 * Throws when the writer must give up. Asked before every request, so that a runner whose lease ended while it
 * waited for an answer sends nothing more.
 */
export interface Guard {
  (): void;
  /** The writer holds a message, and may wait for the store for as long as the guard lets it. */
  readonly holds?: boolean;
  /** Told of every try that is repeated, and why. Throws where it is not to be. */
  readonly retried?: (why: unknown) => void;
}

/** A lease, as a guard sees it: it throws when that is lost. */
interface Held {
  check(): void;
}

/** The guard of a runner with a message in its hands. While the store is away, or refuses, the message is held. */
export function whileHeld(lease: Held, stop?: AbortSignal): Guard {
  const guard = () => {
    lease.check();
    stop?.throwIfAborted();
  };
  return Object.assign(guard, { holds: true });
}

/**
 * The guard of a runner that has a message and no claim yet. It lets go of the message when the store has not answered
 * for a lease: held by a runner that can't work, a lane would stand still for those that can.
 */
export function beforeClaim(deps: Deps, lease: Held, stop: AbortSignal): Guard {
  const { leaseTime } = timing(deps.settings);
  const check = whileHeld(lease, stop);
  let since: number | undefined;
  let isAnswered = true;
  const guard = () => {
    // Asked again with no failure in between: the store has answered.
    if (isAnswered) since = undefined;
    isAnswered = true;
    check();
  };
  const retried = (why: unknown) => {
    isAnswered = false;
    since ??= deps.clock.monotonic();
    if (deps.clock.monotonic() - since >= leaseTime) throw new StoreAway(why as PawlError);
  };
  return Object.assign(guard, { holds: true, retried });
}

/** The message can go to another: either nothing was claimed, or a claim whose answer was lost will be taken over. */
export class StoreAway extends PawlError {
  override readonly name = "StoreAway";
  constructor(cause: PawlError) {
    super(cause.code, cause.message, { cause });
  }
}
