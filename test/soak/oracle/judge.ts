import type { Look } from "../../../infra/drills/outside/board.ts";
import type { Deed } from "../deeds.ts";
import type { Fault } from "../faults/disturb.ts";
import { overlapped } from "./overlapped.ts";
import { repeated } from "./repeated.ts";
import type { StoredTask } from "./stored.ts";

/** Everything that the oracle goes by: what was seen outside, what was done to whom, and what Pawl has stored. */
export interface Evidence {
  /** Tasks whose submit said that they were accepted. */
  readonly accepted: readonly string[];
  readonly deeds: readonly Deed[];
  readonly looks: readonly Look[];
  readonly faults: readonly Fault[];
  readonly stored: ReadonlyMap<string, StoredTask>;
}

export interface Wrong {
  readonly kind: "lost" | "overlapped" | "repeated" | "doubt";
  readonly id: string;
  readonly detail: string;
}

export interface Judgement {
  readonly wrong: readonly Wrong[];
  /** Turns of a process that was frozen between its last look at the signal and the request: nobody can prevent those. */
  readonly late: number;
  /** Times that a task was in doubt, and a fault explains it. */
  readonly doubts: number;
}

export function judge(evidence: Evidence): Judgement {
  const { pairs, late } = overlapped(evidence);
  const doubts = doubtsOf(evidence);
  return {
    wrong: [...lost(evidence), ...pairs, ...repeated(evidence, late), ...doubts.wrong],
    late: late.length,
    doubts: doubts.explained,
  };
}

/** Accepted and not completed; or completed, and nobody saw its handler end. */
function lost({ accepted, stored, deeds }: Evidence): Wrong[] {
  const ended = new Set(deeds.filter(({ what }) => what === "end").map(({ id }) => id));
  return accepted.flatMap((id): Wrong[] => {
    const state = stored.get(id)?.state;
    if (state === "completed" && ended.has(id)) return [];
    const detail = state === "completed" ? "completed, and its handler never ended" : `is ${state ?? "gone"}`;
    return [{ kind: "lost", id, detail }];
  });
}

/** How long after an outage, or an intent, a lease may end because of it. */
const AFTERMATH = 5_000;

/** A doubt is right where the holder was hit between the effect's intent and its receipt, and wrong where nothing was. */
function doubtsOf({ stored, deeds, faults }: Evidence): { wrong: Wrong[]; explained: number } {
  const byTask = Map.groupBy(deeds, ({ id }) => id);
  const wrong: Wrong[] = [];
  let explained = 0;
  for (const { id, doubts } of stored.values()) {
    for (const { effect, begun, at } of doubts) {
      const holder = byTask
        .get(id)
        ?.filter((deed) => deed.what === "start" && deed.at <= begun)
        .reduce((last: Deed | undefined, deed) => (deed.at > (last?.at ?? 0) ? deed : last), undefined);
      const isHit = (fault: Fault) =>
        fault.pid === undefined
          ? fault.at <= begun + AFTERMATH && fault.until + AFTERMATH >= begun
          : fault.pid === holder?.pid && fault.until >= begun - 1_000 && fault.at <= at;
      if (faults.some(isHit)) explained++;
      else wrong.push({ kind: "doubt", id, detail: `${effect} is in doubt, and nothing had happened to it` });
    }
  }
  return { wrong, explained };
}
