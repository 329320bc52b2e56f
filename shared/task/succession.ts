import { CLOCKS_IN_STEP } from "../settings/clocks.ts";
import { takeoverWait } from "../settings/settings.ts";
import type { Millis, Task } from "./document.ts";

/**
 * How long whoever claims a task now has to wait before its handler may start, in milliseconds: until no code of an
 * earlier holder can still act. Nothing where that one let go. Where it told its code to stop and wrote so, the wait
 * began then; where it fell silent, it begins with the claim.
 */
export function successionWait(
  { released, lease, stopped, executions }: Pick<Task, "released" | "lease" | "stopped" | "executions">,
  { now, by }: { readonly now: Millis; readonly by: string },
): number {
  if (released) return 0;
  const whole = takeoverWait(lease);
  if (stopped?.execution !== executions) return whole;
  const passed = now - stopped.at - (stopped.by === by ? 0 : CLOCKS_IN_STEP);
  return Math.max(0, Math.min(whole, whole - passed));
}
