import { sayDuration } from "../../../shared/values/duration.ts";
import type { Drill } from "../drill.ts";
import { type PromiseName, promises } from "../facts.ts";
import type { Figures } from "../judge/figures.ts";
import type { Result } from "../run.ts";

export const PROMISES = Object.keys(promises) as PromiseName[];

/** One drill's line, and below it what is wrong. */
export function resultLines({ drill, fate, seconds, judgement, why }: Result): string[] {
  const time = fate === "not run" ? "" : `${seconds.toFixed(1)} s`;
  const first = `${fate.padEnd(7)} ${time.padStart(7)}  ${drill.name}`;
  const wrong =
    judgement?.broken.map(({ promise, detail }) => `                   ${promise}: ${detail}`) ?? [];
  return [first, ...wrong, ...(why === undefined ? [] : [`                   ${why}`])];
}

export function verdictLine(results: readonly Result[]): string {
  const of = (fate: Result["fate"]) => results.filter((one) => one.fate === fate);
  const [held, broken, failed, left] = [of("held"), of("broken"), of("failed"), of("not run")];
  const ran = held.length + broken.length;
  const names = (some: readonly Result[]) => some.map(({ drill }) => drill.name).join(", ");
  const said = [
    ran === 0
      ? "No drill was carried out to its end: nothing is proven."
      : broken.length === 0
        ? `All five promises held in ${held.length} of ${ran} drills.`
        : `BROKEN in ${broken.length} of ${ran} drills: ${brokenPromises(broken).join(", ")} (${names(broken)}).`,
    failed.length > 0 ? `Not carried out: ${names(failed)}.` : "",
    left.length > 0 ? `Not run: ${names(left)}.` : "",
  ];
  return said.filter(Boolean).join(" ");
}

function brokenPromises(broken: readonly Result[]): PromiseName[] {
  const all = broken.flatMap(({ judgement }) => judgement?.broken ?? []);
  return PROMISES.filter((name) => all.some(({ promise }) => promise === name));
}

/** "PAWL_ACK_WAIT=6s" */
export const ownSettings = ({ env = {} }: Drill): string =>
  Object.entries(env)
    .map(([name, value]) => `${name}=${value}`)
    .join(", ");

/** What a drill of deduplication is asked for, as rows. */
export function figureRows(figures: Figures): (readonly [what: string, value: string])[] {
  const { ackWaitMs, horizonMs, recordsMs, duplicates, restarts, recoveryMs } = figures;
  const { window, subject, document, executed } = duplicates;
  const records = recordsMs ? [...new Set(recordsMs.map(sayDuration))].join(" to ") : "no task ended";
  return [
    ["effective ack_wait, of the server", sayDuration(ackWaitMs)],
    ["a message may come again for", sayDuration(horizonMs)],
    ["records of finished work are kept for", records],
    ["duplicates stopped by the stream's window", String(window)],
    ["duplicates stopped by the occupied subject", String(subject)],
    ["duplicates stopped by the document", String(document)],
    ["duplicates that reached execution", String(executed)],
    ["executions beyond one a task", String(restarts)],
    [
      "from the last sign of a dead execution to the next",
      recoveryMs === undefined ? "none died" : sayDuration(recoveryMs),
    ],
  ];
}
