import { messageOf } from "../errors/errors.ts";
import type { Deps } from "../ports/deps.ts";
import type { TaskStore } from "../ports/store.ts";
import type { Millis } from "../task/document.ts";

/** The function comes every minute: what has not come for so long, or waits that long, nobody has looked at. */
export const SILENT_AFTER = 180_000;
/** A text, which nobody guards: one write, and no read before it. */
const NAME = "dispatch-alive";

/**
 * The dispatch function's sign of life: where nothing is due, nothing else shows that it comes. Never throws: what it is
 * there for matters more than that somebody can see it.
 */
export async function sayAlive({ store, clock, log }: Pick<Deps, "store" | "clock" | "log">): Promise<void> {
  try {
    await store.putText(NAME, String(clock.now()));
  } catch (error) {
    log("warn", "dispatch.unseen", { reason: messageOf(error) });
  }
}

/** When the dispatch function last began; undefined where it never did, or was of a version that did not say so. */
export async function aliveAt({ getText }: Pick<TaskStore, "getText">): Promise<Millis | undefined> {
  const at = Number((await getText(NAME)) ?? Number.NaN);
  return Number.isFinite(at) ? at : undefined;
}
