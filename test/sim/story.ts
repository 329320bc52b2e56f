import type { Plan } from "./plan/plan.ts";
import type { Played } from "./play.ts";
import { promises } from "./promises.ts";

/** A simulation as a person reads it: what was planned, who did what when, and how it came out. */
export function told(plan: Plan, { story, broken, steps }: Played): string {
  const seconds = (ms: number) => (ms / 1_000).toFixed(3).padStart(10);
  const lines = story.map(({ at, who, what }) => `${seconds(at)} s  ${who.padEnd(12)} ${what}`);
  const end = broken
    ? `BROKEN: ${broken.promise} (${promises[broken.promise]}): ${broken.message}`
    : "No promise was broken.";
  return [...planned(plan), "", ...lines, "", `${end} (${steps} steps)`].join("\n");
}

function planned({
  seed,
  agents,
  runners,
  operations,
  redrives = [],
  faults,
  serverFaults,
  losses,
  calmAt,
  isReplicated,
}: Plan): string[] {
  const shown = (what: string, list: readonly unknown[]) =>
    list.map((one) => `  ${what}: ${JSON.stringify(one)}`);
  return [
    `Seed ${seed}: losses ${losses}, calm after ${calmAt / 1_000} s${isReplicated ? ", a store of several copies" : ""}`,
    ...shown("agent", [agents.main]),
    ...shown("child", JSON.stringify(agents.main.program).includes('"child"') ? [agents.child] : []),
    ...shown("runner", runners),
    ...shown("somebody", operations),
    ...shown("what fails", redrives),
    ...shown("fault", faults),
    ...shown("server", serverFaults),
  ];
}
