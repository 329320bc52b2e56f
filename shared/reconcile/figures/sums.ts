import { CLASS_NAMES, CLASSES } from "../books/sequences.ts";
import type { Report } from "./report.ts";
import { published, total } from "./tally.ts";

type Part = readonly [count: number, what: string];

/** Figures of a report that a reader adds up: both sides of it, part by part, with the same total. */
export interface Sum {
  /** What is counted on both sides. */
  readonly of: string;
  readonly left: readonly Part[];
  readonly right: readonly Part[];
}

/** What no figure accounts for: a report that shows it contradicts itself. */
export const UNACCOUNTED = "NOT ACCOUNTED FOR";

/** How the figures of a report add up. */
export function sumsOf({ agents, live }: Report): Sum[] {
  const all = total(agents);
  const isLive = (...states: readonly string[]) =>
    Object.values(live)
      .flatMap((one) => Object.entries(one))
      .reduce((sum, [state, count]) => sum + (states.length === 0 || states.includes(state) ? count : 0), 0);
  const { classes, carriedOver, deadLetters } = all;
  return [
    balanced("sequences", {
      left: [
        [published(all), "published"],
        [carriedOver, "open since an earlier report"],
      ],
      right: CLASSES.map((name) => [classes[name], CLASS_NAMES[name]]),
    }),
    balanced("tasks", {
      left: [[all.created, "that came"]],
      right: [
        [all.completed, "completed"],
        [all.failed, "dead letters"],
        [all.cancelled, "cancelled"],
        [isLive(), "live at the end"],
      ],
      missing: "live before, or redriven",
      over: "ended while this was written",
    }),
    balanced("dead letters", {
      left: [[all.failed, "tasks that became one"]],
      right: Object.entries(deadLetters).map(([code, count]) => [count, code]),
    }),
    balanced("failures", {
      left: [[classes.failed, "messages whose task failed then"]],
      right: [[all.failed, "tasks that are dead letters since"]],
      missing: "failed without a message",
      over: "redriven since",
    }),
    balanced("suspensions", {
      left: [[classes.waiting + classes.in_doubt, "sequences that ended in a wait or a doubt"]],
      right: [[isLive("waiting", "in_doubt"), "tasks that wait or are in doubt at the end"]],
      missing: "suspended before",
      over: "gone on with, less those suspended before",
    }),
  ].filter(({ left }) => left.length > 0);
}

interface Sides {
  readonly left: readonly Part[];
  readonly right: readonly Part[];
  /** What is on the right and not among the left's figures… */
  readonly missing?: string;
  /** …and the other way round. */
  readonly over?: string;
}

function balanced(of: string, { left, right, missing = UNACCOUNTED, over = UNACCOUNTED }: Sides): Sum {
  const rest = totalOf(right) - totalOf(left);
  const shown = (parts: readonly Part[]) => parts.filter(([count]) => count !== 0);
  return {
    of,
    left: shown([...left, [Math.max(0, rest), missing]]),
    right: shown([...right, [Math.max(0, -rest), over]]),
  };
}

export const totalOf = (parts: readonly Part[]): number => parts.reduce((sum, [count]) => sum + count, 0);
