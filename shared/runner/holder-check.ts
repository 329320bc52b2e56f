import type { IsSilent } from "../dispatch/dead-letters.ts";
import type { Deps } from "../ports/deps.ts";
import { timing } from "../settings/settings.ts";

/** How long a holder has to come back after its server did. */
const REUNION = 5_000;

/**
 * Whether a task's holder may be taken for dead. A server that was killed forgets deliveries, and repeats them while the
 * holder is well: so it is asked by name, and one whose server was restarted gets time to connect again. Waits a while
 * before it says no, but not beyond the signal, which is made when somebody is asked.
 */
export function holderCheck(deps: Deps, untilOf: () => AbortSignal): IsSilent {
  const { beatEvery, leaseTime } = timing(deps.settings);
  let unansweredSince: number | undefined;
  return async (task) => {
    const { via } = task;
    const until = untilOf();
    if (await deps.bus.isHeld(task)) {
      unansweredSince = undefined;
      await deps.clock.sleep(beatEvery, until);
      return false;
    }
    unansweredSince ??= deps.clock.monotonic();
    if (via === deps.bus.serverId()) return true;
    if (deps.clock.monotonic() - unansweredSince >= Math.min(leaseTime, REUNION)) return true;
    await deps.clock.sleep(100, until);
    return false;
  };
}
