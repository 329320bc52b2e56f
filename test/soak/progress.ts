import { countKinds } from "./faults/disturb.ts";
import { longestRecovery } from "./figures.ts";
import type { Progress } from "./soak.ts";

const EVERY = 3_000;

/** One line that is written over, for a person who watches; nothing where nobody does. */
export function progressLine(to: NodeJS.WriteStream): { tell: (now: Progress) => void; end: () => void } {
  let last = 0;
  return {
    tell: (now) => {
      if (!to.isTTY || Date.now() < last + EVERY) return;
      last = Date.now();
      to.write(`\r\x1b[K${lineOf(now).slice(0, (to.columns || 120) - 1)}`);
    },
    end: () => {
      if (to.isTTY && last > 0) to.write("\r\x1b[K");
    },
  };
}

export function lineOf({ regime, phase, begun, tasks, faults, deeds }: Progress, now = Date.now()): string {
  const seconds = Math.floor((now - begun) / 1000);
  const clock = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  const open = Object.entries(Object.groupBy(tasks.open.values(), (state) => state))
    .map(([state, all]) => `${all?.length} ${state}`)
    .join(", ");
  const completed = [...tasks.over.values()].filter((state) => state === "completed").length;
  const other = tasks.over.size - completed;
  const kinds = Object.entries(countKinds(faults)).map(([kind, count]) => `${count} ${kind}`);
  const recovery = (longestRecovery(deeds, new Set()).ms / 1000).toFixed(1);
  return [
    `${regime} ${clock} ${phase}`,
    `${completed} completed${other ? `, ${other} failed` : ""}${open ? `, ${open}` : ""}`,
    `${perMinute(completed, now - begun)}/min`,
    kinds.join(", "),
    `worst recovery ${recovery} s`,
  ].join(" | ");
}

export const perMinute = (count: number, ms: number) => Math.round((count * 60_000) / Math.max(1, ms));
