import { setTimeout as sleep } from "node:timers/promises";
import { type Channel, type FaultKind, type Planned, planOf } from "./plan.ts";

/** A fault that was injected. */
export interface Fault {
  readonly kind: FaultKind;
  readonly at: number;
  /** When it was taken back, and whoever was hit could go on. Of a kill of a runner: the same moment. */
  until: number;
  /** Of the runner that was hit. */
  readonly pid?: number;
  /** Which node, where there are several. */
  readonly whom?: string;
}

/** Does a fault: says whom it hit once it has begun, and resolves when it is taken back. */
export type Inject = (planned: Planned, begun: (whom?: Pick<Fault, "pid" | "whom">) => void) => Promise<void>;

/** One channel's faults, by its plan, until told to stop. A fault that has begun is always taken back. */
export async function disturb(
  channel: Channel,
  seed: string,
  inject: Inject,
  log: Fault[],
  stop: AbortSignal,
): Promise<void> {
  const lasting = new Set<Promise<void>>();
  const one = async (planned: Planned) => {
    let fault: Fault | undefined;
    await inject(planned, (whom = {}) => {
      const at = Date.now();
      fault = { kind: planned.kind, at, until: Number.POSITIVE_INFINITY, ...whom };
      log.push(fault);
    });
    if (fault) fault.until = Date.now();
  };
  for (const planned of planOf(channel, seed)) {
    await sleep(planned.after, undefined, { signal: stop }).catch(() => {});
    if (stop.aborted) break;
    const done = one(planned).finally(() => lasting.delete(done));
    lasting.add(done);
    if (channel !== "runners") await done;
  }
  await Promise.all(lasting);
}

/** How many of each kind. */
export function countKinds(log: readonly Fault[]): Partial<Record<FaultKind, number>> {
  const counts: Partial<Record<FaultKind, number>> = {};
  for (const { kind } of log) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}
