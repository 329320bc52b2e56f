import type { Task } from "./document.ts";

/** The note of a hand-off that only stands for a wait: what it was to wait for had come. */
export const WAIT_OVER = "what it waits for has come";

/** What an execution ends with if its handler asked for no more: its past is read again because it chose to wait. */
const SUSPENDED: ReadonlySet<string> = new Set(["sleep", "wait", "doubt"]);
/** What it ends with otherwise; or its beginning, if no end was ever written. */
const CUT_SHORT: ReadonlySet<string> = new Set(
  "retry hold handOff fail exhaust claim takeover start adopt".split(" "),
);

/**
 * Whether the execution before this one crashed, handed off or failed: without its journal, the task would pay for all
 * that it had done once more. By the task's history, of which only the newest entries are kept: what fell out of it is
 * not claimed.
 */
export function wasCutShort({ fence, history }: Pick<Task, "fence" | "history">): boolean {
  if (history.some((one) => one.fence === fence && one.event === "takeover")) return true;
  const end = history.findLast(
    (one) => one.fence < fence && (SUSPENDED.has(one.event) || CUT_SHORT.has(one.event)),
  );
  return end !== undefined && CUT_SHORT.has(end.event) && end.note !== WAIT_OVER;
}
