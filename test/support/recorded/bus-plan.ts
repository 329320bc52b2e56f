import type { Delivery } from "../../../shared/ports/bus.ts";
import { type Random, random } from "../../sim/world/random.ts";
import type { BusWorld } from "../servers/buses.ts";
import { type BusStep, busAnswer, FOR_GOOD } from "./bus-steps.ts";
import type { Recorded } from "./compare.ts";

/** How a recording deals with time: over ack waits and windows, or too short for either to matter. */
export interface Timing {
  /** Both the ack wait and the duplicate window. */
  readonly wait: number;
  /** How often they pass, and how many steps are between. */
  readonly passes: number;
  readonly steps: number;
}

export const TIMED: Timing = { wait: 2_000, passes: 2, steps: 12 };
export const UNTIMED: Timing = { wait: 120_000, passes: 0, steps: 60 };

/** Longer than the wait, so that a timer that is late by this much changes nothing. */
const MARGIN = 1_000;

/** Makes steps up on one world, which says what to expect of another. */
export async function recordBus(world: BusWorld, seed: number, timing: Timing): Promise<Recorded<BusStep>[]> {
  const seeded = random(seed, `bus ${timing.wait}`);
  const recorded: Recorded<BusStep>[] = [];
  const deliveries: Delivery[] = [];
  const record = async (step: BusStep) => {
    recorded.push({ step, answer: await busAnswer(world, step, deliveries) });
  };
  await record({ do: "change", ...limits(seeded, timing) });
  for (let pass = 0; pass <= timing.passes; pass++) {
    for (let i = 0; i < timing.steps; i++) await record(stepOf(seeded, deliveries.length, timing));
    for (const look of ["inspect", "advisories"] as const) await record({ do: look });
    if (pass < timing.passes) await record({ do: "pass", ms: timing.wait + MARGIN });
  }
  return recorded;
}

/** Of several in flight the server redelivers those first that it happens to look at together: only where none expires. */
function limits(seeded: Random, { passes }: Timing) {
  const maxDeliver = seeded.pick([1_000, 1_000, 3, 2, 1]);
  return { maxDeliver, maxAckPending: passes > 0 ? 1 : seeded.pick([1, 1, 2, 3]) };
}

function stepOf(seeded: Random, delivered: number, timing: Timing): BusStep {
  const task = seeded.pick(["a", "b", "c", "d"]);
  // The newest mostly; now and then one of long ago.
  const of = seeded.chance(0.7) ? delivered - 1 : seeded.int(Math.max(1, delivered));
  const kind = seeded.next();
  if (kind < 0.25 || (delivered === 0 && kind < 0.4))
    return { do: "publish", task, msgId: `${task}${seeded.int(3)}` };
  if (delivered === 0 || kind < 0.45) return { do: "pull" };
  if (kind < 0.55) return { do: "ack", of };
  if (kind < 0.66) return { do: "nak", of, delay: delay(seeded, timing) };
  if (kind < 0.71) return { do: "working", of };
  if (kind < 0.76) return { do: "current", of };
  if (kind < 0.8) return { do: "lookup", task };
  if (kind < 0.84) return { do: "remove", seq: 1 + seeded.int(12) };
  if (kind < 0.87) return { do: "survivors", from: seeded.int(8), limit: 1 + seeded.int(6) };
  if (kind < 0.9) return { do: "state" };
  if (kind < 0.96) return { do: "inspect" };
  if (kind < 0.97) return { do: "purge" };
  if (kind < 0.98) return { do: "change", ...limits(seeded, timing) };
  return { do: "advisories" };
}

function delay(seeded: Random, { passes }: Timing): number {
  const isShort = seeded.chance(passes > 0 ? 0.1 : 0.15);
  return isShort ? 100 : seeded.chance(0.25) ? FOR_GOOD : 0;
}
