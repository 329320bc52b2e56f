import { messageOf } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import { reconciledAt } from "../reconcile/books/reports.ts";
import { CLOCKS_AT_WORST } from "../settings/clocks.ts";

const EVERY = 600_000;
const BATCH = 100;
/** What is removed at most while others wait for it; and by a runner that stays, which goes on ten minutes later. */
const SOME = 100;
const MOST = 200_000;

/**
 * Removes tasks whose retention is over, with all they own, until there are none left, or it is told to stop. Two at
 * once are harmless. Where nothing has expired it is a few reads.
 */
export async function expireTasks(
  deps: Pick<Deps, "store" | "clock" | "log" | "settings">,
  stop: AbortSignal,
  most = SOME,
): Promise<number> {
  const until = await seenUntil(deps);
  let removed = 0;
  for (let isLeft = true; isLeft && removed < most && !stop.aborted; ) {
    const limit = Math.min(BATCH, most - removed);
    const count = await deps.store.expire(until, limit);
    removed += count;
    isLeft = count === limit;
  }
  if (removed > 0) deps.log("info", "tasks.expired", { removed });
  return removed;
}

/** For a runner, whose own work does not depend on it. */
export async function expireSome(deps: Deps, stop: AbortSignal, most = SOME): Promise<void> {
  try {
    await expireTasks(deps, stop, most);
  } catch (error) {
    deps.log("warn", "expiry.failed", { reason: messageOf(error) });
  }
}

/** For a runner that stays: now, and every ten minutes until the stop. */
export async function keepExpiring(deps: Deps, stop: AbortSignal): Promise<void> {
  while (!stop.aborted) {
    await expireSome(deps, stop, MOST);
    await deps.clock.sleep(EVERY, stop);
  }
}

/**
 * What ended after the last reconciliation stays until the next one has seen it: without its document its sequences
 * would be unexplained. Where none was ever made, nobody waits for one.
 */
async function seenUntil({
  store,
  clock,
  log,
  settings,
}: Pick<Deps, "store" | "clock" | "log" | "settings">): Promise<number> {
  const now = clock.now();
  const at = await reconciledAt(store);
  const until = at === undefined ? now : Math.min(now, at + settings.retention - CLOCKS_AT_WORST);
  if (until < now)
    log("warn", "expiry.waits", {
      reconciled: new Date(at ?? 0).toISOString(),
      todo: "Run pawl reconcile: what ended since then is kept until a reconciliation has seen it",
    });
  return until;
}
