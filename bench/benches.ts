import type { Bench } from "./bench.ts";
import { firestoreBenches } from "./benches/firestore.ts";
import { idleBenches } from "./benches/idle.ts";
import { journalBenches } from "./benches/journal.ts";
import { noopBenches } from "./benches/noop.ts";
import { reconcileBenches } from "./benches/reconcile.ts";
import { sealBenches } from "./benches/seal.ts";
import { simBenches } from "./benches/sim.ts";
import { startBenches } from "./benches/start.ts";
import { steadyBenches } from "./benches/steady.ts";
import { stepsBenches } from "./benches/steps.ts";
import { takeoverBenches } from "./benches/takeover.ts";
import { wokenBenches } from "./benches/woken.ts";

/** In the order in which they are run. */
export const benches = {
  ...noopBenches,
  ...stepsBenches,
  ...startBenches,
  ...firestoreBenches,
  ...journalBenches,
  ...wokenBenches,
  ...takeoverBenches,
  ...reconcileBenches,
  ...steadyBenches,
  ...idleBenches,
  ...sealBenches,
  ...simBenches,
} satisfies Record<string, Bench>;
