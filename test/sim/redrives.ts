import type { Head } from "../../shared/journal/entries.ts";
import type { Redriven, Task } from "../../shared/task/document.ts";
import { attempt } from "./operator.ts";
import type { Simulation } from "./simulation.ts";

/** Somebody redrives whatever fails, as often as the plan says. */
export function keepRedriving(simulation: Simulation): { readonly left: () => number } {
  const { plan, time, oracle } = simulation;
  const planned = [...(plan.redrives ?? [])];
  let left = 0;
  oracle.failed = ({ id, raw }) => {
    const redrive = raw ? undefined : planned.shift();
    if (!redrive) return;
    left++;
    const over = () => {
      left--;
    };
    const { after, ...how } = redrive;
    time.at(time.now + after, () => attempt(simulation, { at: 0, task: id, ...how }, over));
  };
  return { left: () => left };
}

/** One of the calls that a task's journal has, by a number between 0 and 1; none where it has none. */
export function entryOf(head: Head | undefined, place: number): string | undefined {
  const keys = head?.recent.flatMap((one) => (one.kind === "step" || one.kind === "intent" ? [one.key] : []));
  return keys?.[Math.floor(place * keys.length)];
}

/** What is wrong with what a redrive forgets: it may be done once, and may forget failures only, unless somebody chose an entry. */
export function wronglyForgotten(head: Head, { redriven }: Task): string | undefined {
  const entries = head.recent;
  const last = entries.at(-1);
  if (last?.kind !== "redriven") return undefined;
  const times = entries.filter((one) => one.kind === "redriven" && one.dispatch === last.dispatch).length;
  if (times > 1) return `redrive ${last.dispatch} was heeded ${times} times`;
  const first = head.count - entries.length;
  for (const [from, to] of last.forgets)
    for (let at = Math.max(from, first); at <= to; at++) {
      // The document may tell of the next redrive already, which the journal does not know yet.
      const isOf = redriven?.dispatch === last.dispatch;
      const why = isOf && isPlain(redriven) && wronglyAsked(entries, at - first);
      if (why) return why;
    }
  return undefined;
}

const isPlain = (redriven: Redriven | undefined) => redriven?.again !== undefined;

function wronglyAsked(entries: Head["recent"], at: number): string | undefined {
  const begun = entries[at];
  // Calls next to each other are one range, with what lies between them: their ends.
  if (begun?.kind !== "intent" && begun?.kind !== "step") return undefined;
  const { key } = begun;
  if (begun.kind !== "intent" || begun.of !== "wait") return `${key} is no wait, and is forgotten`;
  const receipt = entries.findLast((one) => one.kind === "receipt" && one.key === key);
  const value = JSON.stringify(receipt?.kind === "receipt" ? receipt.value : undefined);
  if (!/"timedOut":true|"approved":false|"code":/.test(value)) return `${key} succeeded, and is forgotten`;
  // What was done before it began is not what came of it: an effect that an earlier redrive has kept.
  const later = entries.slice(at).find((one) => "alone" in one && one.alone && one.at > begun.at);
  return later && `${key} is forgotten, and the handler had gone on with ${later.key}`;
}
