import { isPawlError, messageOf, PawlError } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import { backoff } from "../values/backoff.ts";
import { trouble } from "./trouble.ts";

/** Pauses between tries of something that is away: 50 ms, doubling to 2 s. */
export function pause(deps: Pick<Deps, "clock">, failures: number, signal?: AbortSignal): Promise<void> {
  return deps.clock.sleep(backoff(failures, Math.random(), 50, 2_000), signal);
}

/** For those who hold no message and whose caller waits: long enough for a client to warm up or a server to come back. */
export const PATIENCE = 15_000;

/** Tries again for as long as the patience lasts, after errors that may pass: a cluster that is choosing its leader, say. */
export async function patiently<T>(
  deps: Pick<Deps, "clock" | "log">,
  passing: "bus_unavailable" | "store_unavailable",
  work: () => Promise<T>,
): Promise<T> {
  const until = deps.clock.monotonic() + PATIENCE;
  const away = trouble(deps);
  for (let failures = 1; ; failures++) {
    try {
      return await work();
    } catch (error) {
      if (!isPawlError(error, passing) || deps.clock.monotonic() > until) throw error;
      away.met(passing.replace("_", "."), { reason: messageOf(error) });
      await pause(deps, failures);
    }
  }
}

/** Throws once the patience is over, with the last reason. In a dispatch, repeated tries are counted with its phase. */
export function whilePatient(
  deps: Pick<Deps, "clock" | "meter">,
  what: string,
  dispatch?: { readonly agent: string; readonly phase: "dispatched_write" | "rollback_write" },
): (() => void) & { retried: (why: unknown) => void } {
  const until = deps.clock.monotonic() + PATIENCE;
  let last: unknown;
  const guard = () => {
    if (deps.clock.monotonic() < until) return;
    const why = last === undefined ? "somebody else was always faster" : messageOf(last);
    const message = `${what}: not stored after trying for ${PATIENCE / 1_000} s. The last reason: ${why}`;
    throw new PawlError("store_unavailable", message, { cause: last });
  };
  const retried = (why: unknown) => {
    last = why;
    if (dispatch) deps.meter.count("publish_retries", { agent: dispatch.agent, phase: dispatch.phase });
  };
  return Object.assign(guard, { retried });
}
