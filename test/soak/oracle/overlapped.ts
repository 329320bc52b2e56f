import { type Execution, executions, overlaps } from "../../../infra/drills/outside/executions.ts";
import type { Deed } from "../deeds.ts";
import type { Fault } from "../faults/disturb.ts";
import type { Evidence, Wrong } from "./judge.ts";

/** How soon after it woke a process has sent what it was about to send when it froze. */
const WOKEN = 1_000;
/** At most one in so many freezes hits a process in the moment before it sends. */
const CHANCE = 50;

/** An execution that acted when its task was no longer its own, and since when. */
interface Trespass {
  readonly by: Execution;
  readonly since: number;
  readonly why: string;
}

/**
 * Executions that acted after the next one of their task had started, or after the task was completed. A process that is
 * frozen between its last look at its signal and the system call that acts does that one act when it wakes, whatever
 * anybody does. Handlers say when they looked. Of a turn only its arrival is known: such a one is counted apart, if our own
 * log has the freeze; a second act of the same execution is not excused, nor are more of them than chance would hit.
 */
export function overlapped({ deeds, faults, stored }: Evidence): { pairs: Wrong[]; late: Deed[] } {
  const freezes = faults.filter(({ kind }) => kind === "runner frozen");
  const frozen = Map.groupBy(freezes, ({ pid }) => pid);
  const all = executions(deeds);
  const early = beforeEnd(all);
  const known = new Set(early.map(({ by }) => by));
  const trespasses = [...early, ...afterEnd(all, stored).filter(({ by }) => !known.has(by))];
  const isExcused = ({ by, since }: Trespass) => {
    const [act, ...more] = actsAfter(by, since);
    return act !== undefined && more.length === 0 && isLate(act, since, frozen.get(act.pid) ?? []);
  };
  const excused = trespasses.filter(isExcused);
  const isChance = excused.length <= Math.ceil(freezes.length / CHANCE);
  const wrong = isChance ? trespasses.filter((one) => !isExcused(one)) : trespasses;
  const late = excused.flatMap(({ by, since }) => actsAfter(by, since));
  return { pairs: wrong.map(said), late: isChance ? late : [] };
}

function beforeEnd(all: readonly Execution[]): Trespass[] {
  return overlaps(all).flatMap(([by, next]) =>
    by && next ? [{ by, since: next.start, why: `${runOf(next)} had started` }] : [],
  );
}

/** One that only began then is none that the next one could overlap with, and is as wrong. */
function afterEnd(all: readonly Execution[], stored: Evidence["stored"]): Trespass[] {
  return all.flatMap((by) => {
    const since = stored.get(by.id)?.completedAt ?? Number.POSITIVE_INFINITY;
    return by.end > since ? [{ by, since, why: "it was completed" }] : [];
  });
}

const actsAfter = ({ notes }: Execution, since: number) =>
  (notes as readonly Deed[]).filter(({ what, at }) => what !== "aborted" && at > since);

/** A turn, asked for by a process that was frozen when the task passed on, and has just woken. */
function isLate({ what, deed, at }: Deed, since: number, frozen: readonly Fault[]): boolean {
  const isTurn = what === "act" && deed?.startsWith("ask/turn") === true;
  return (
    isTurn && frozen.some((fault) => fault.at < since && fault.until <= at + 50 && at <= fault.until + WOKEN)
  );
}

const runOf = ({ notes, start }: Execution) => `${notes[0]?.run} (from ${start})`;

function said({ by, since, why }: Trespass): Wrong {
  const acts = actsAfter(by, since).map(({ what, deed, at }) => `${deed ?? what} at ${at}`);
  const detail = `${runOf(by)} did ${acts.join(", ")} after ${why}, at ${since}`;
  return { kind: "overlapped", id: by.id, detail };
}
