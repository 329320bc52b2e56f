import type { Cost } from "../../journal/cost.ts";
import { countsOf } from "../../task/counts.ts";
import type { Counts, Task } from "../../task/document.ts";

type Read = (task: Task, counts: Counts) => number;

/** How every number that a report counts is read from a document. None of them ever goes down. */
const READ = {
  writes: (_, { writes }) => writes,
  retries: (_, { retries }) => retries,
  takeovers: (_, { takeovers }) => takeovers,
  // A dead letter whose history forgot how it became one.
  failed: ({ state }, { failed }) => Math.max(failed, state === "failed" ? 1 : 0),
  handOffs: (_, { handOffs }) => handOffs,
  suspensions: (_, { suspensions }) => suspensions,
  executions: ({ executions }) => executions,
  dispatches: ({ dispatches }) => dispatches,
  window: ({ publishDuplicates }) => publishDuplicates.window ?? 0,
  subject: ({ publishDuplicates }) => publishDuplicates.subject ?? 0,
  document: ({ publishDuplicates }) => publishDuplicates.document ?? 0,
  key: ({ publishDuplicates }) => publishDuplicates.key ?? 0,
  skipped: ({ redeliveriesSkipped }) => redeliveriesSkipped,
  journaled: ({ journaled }, { discarded }) => journaled + discarded,
  spentTurns: ({ spent }) => spent.turns,
  spentInputTokens: ({ spent }) => spent.inputTokens,
  spentOutputTokens: ({ spent }) => spent.outputTokens,
  spentUsd: ({ spent }) => spent.usd,
  savedTurns: ({ saved }) => saved.turns,
  savedInputTokens: ({ saved }) => saved.inputTokens,
  savedOutputTokens: ({ saved }) => saved.outputTokens,
  savedUsd: ({ saved }) => saved.usd,
  completed: ({ state }) => (state === "completed" ? 1 : 0),
  cancelled: ({ state }) => (state === "cancelled" ? 1 : 0),
} as const satisfies Record<string, Read>;

type Name = keyof typeof READ;

/** All that a report counts of one task. What it did since an earlier report is the difference of two of these. */
export type Counted = Readonly<Record<Name, number>>;

export const COUNTED = Object.keys(READ) as readonly Name[];

const numbers = (of: (name: Name) => number): Counted =>
  Object.fromEntries(COUNTED.map((name) => [name, of(name)])) as Record<Name, number>;

/** Of a task that nobody has counted yet. */
export const NOTHING_COUNTED: Counted = numbers(() => 0);

export function countedOf(task: Task): Counted {
  const counts = countsOf(task);
  return numbers((name) => (READ[name] as Read)(task, counts));
}

/** Never less than nothing: a document that was set back takes nothing back from an earlier report. */
export function minus(now: Counted, before: Counted): Counted {
  return numbers((name) => Math.max(0, now[name] - (before[name] ?? 0)));
}

export function costOf(counted: Counted, of: "spent" | "saved"): Cost {
  return {
    turns: counted[`${of}Turns`],
    inputTokens: counted[`${of}InputTokens`],
    outputTokens: counted[`${of}OutputTokens`],
    usd: counted[`${of}Usd`],
  };
}
