import { type Execution, executions, overlaps } from "../../support/executions.ts";
import type { Deed } from "../deeds.ts";
import type { Fault } from "../faults/disturb.ts";
import type { Evidence, Wrong } from "./judge.ts";

/** How soon after it woke a process has sent what it was about to send when it froze. */
const WOKEN = 1_000;

/**
 * Executions of one task of which one acted after the next had started. A process that is frozen between its last look at
 * its signal and the system call that acts does that one act when it wakes, whatever anybody does: receivers are given keys
 * for that. Such an act is counted apart, if our own log has the freeze; a second act of the same execution is not excused.
 */
export function overlapped({ deeds, faults }: Evidence): { pairs: Wrong[]; late: number } {
  const frozen = Map.groupBy(
    faults.filter(({ kind }) => kind === "runner frozen"),
    ({ pid }) => pid,
  );
  let late = 0;
  const pairs = overlaps(executions(deeds)).flatMap(([one, next]): Wrong[] => {
    if (!one || !next) return [];
    const after = one.notes.filter((deed) => deed.what !== "aborted" && deed.at > next.start) as Deed[];
    const [act, ...more] = after;
    if (act && more.length === 0 && isLate(act, next.start, frozen.get(act.pid) ?? [])) {
      late++;
      return [];
    }
    const detail = `${said(one)} did ${after.map(deedAt).join(", ")} after ${said(next)} had started`;
    return [{ kind: "overlapped", id: one.id, detail }];
  });
  return { pairs, late };
}

/** Sent over a network, by a process that was frozen when the next execution began, or since, and has just woken. */
function isLate({ what, deed, at }: Deed, next: number, frozen: readonly Fault[]): boolean {
  const isSent = what === "act" && deed !== undefined && /^(ask|mail)/.test(deed);
  return (
    isSent && frozen.some((fault) => fault.at < next && fault.until <= at + 50 && at <= fault.until + WOKEN)
  );
}

const deedAt = ({ what, deed, at }: Deed) => `${deed ?? what} at ${at}`;
const said = ({ notes, start }: Execution) => `${notes[0]?.run} (from ${start})`;
