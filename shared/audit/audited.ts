import { isPawlError, messageOf } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import type { AuditFacts, Deed } from "./entry.ts";
import { append } from "./trail.ts";

/**
 * Does something on a person's behalf. That it was asked for is written first, and where it can't be, nothing is done: what was
 * done and is not in the trail there is not. Its outcome follows; a process that dies before that leaves "asked", and the task's
 * own history, which names who asked too, says whether it was done. What nobody asked for is not in the trail.
 *
 * `done`: what is known of the deed only afterwards.
 */
export async function audited<T>(
  deps: Deps,
  deed: Deed,
  work: () => Promise<T>,
  done: (result: T) => Partial<Deed> = () => ({}),
): Promise<T> {
  const { actor } = deps;
  if (!actor) return work();
  const asked = await append(deps, { ...deed, actor, outcome: "asked" });
  const ended = async (facts: Pick<AuditFacts, "outcome" | "code"> & Partial<Deed>) => {
    try {
      await append(deps, { ...deed, actor, ...facts, of: asked.n });
    } catch (error) {
      deps.log("warn", "audit.outcome-lost", { entry: asked.n, reason: messageOf(error) });
    }
  };
  let result: T;
  try {
    result = await work();
  } catch (error) {
    const code = isPawlError(error) ? error.code : "unexpected";
    // What may be tried again may have been done: an answer that was lost, say.
    const isCertain = isPawlError(error) && error.disposition !== "retry";
    await ended({ outcome: isCertain ? "refused" : "unknown", code });
    throw error;
  }
  await ended({ outcome: "done", ...done(result) });
  return result;
}
