import { isPawlError, messageOf, PawlError } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import type { Guard } from "./guards.ts";
import { policies } from "./policies.ts";
import { retry } from "./retry.ts";
import { trouble } from "./trouble.ts";

/** For those who hold no message and whose caller waits: long enough for a client to warm up or a server to come back. */
export const PATIENCE = policies.patience.lasts;

/** Tries again for as long as the patience lasts, after errors that may pass: a cluster that is choosing its leader, say. */
export function withPatience<T>(
  deps: Pick<Deps, "clock" | "log">,
  passing: "bus_unavailable" | "store_unavailable",
  work: () => Promise<T>,
): Promise<T> {
  const away = trouble(deps);
  return retry(deps, "patience", work, {
    mayPass: (error) => isPawlError(error, passing),
    failed: (error) => away.met(passing.replace("_", "."), { reason: messageOf(error) }),
  });
}

/** Throws once the patience is over, with the last reason. In a dispatch, repeated tries are counted with its phase. */
export function whilePatient(
  deps: Pick<Deps, "clock" | "meter">,
  what: string,
  dispatch?: { readonly agent: string; readonly phase: "dispatched_write" | "rollback_write" },
): Guard {
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
