import { doubtful, resolutionName } from "../journal/entries.ts";
import type { Journal } from "../journal/journal.ts";
import { passedBy } from "../journal/redriven.ts";
import type { Running } from "../task/document.ts";
import type { Outcome } from "./outcome.ts";

/** An outcome as the journal has it. `on`: the answers that the handler failed on. */
export function byJournal(task: Running, journal: Journal, outcome: Outcome, on: readonly number[]): Outcome {
  switch (outcome.kind) {
    case "cancelled":
      return cancelled(task, journal, outcome.ended);
    case "completed": {
      const doubt = passedBy(journal.listed(), isAnswered(task));
      return doubt ? { kind: "doubt", ...doubt, ended: outcome.ended } : outcome;
    }
    case "failed":
    case "retry": {
      const isHandlers = on.length > 0 && outcome.error.code !== "task_timeout";
      return isHandlers ? { ...outcome, error: { ...outcome.error, on } } : outcome;
    }
    default:
      return outcome;
  }
}

/** With an effect under way that nobody knows the end of, it is for a person to say first. */
export function cancelled(task: Running, journal: Journal, ended: boolean): Outcome {
  const doubt = doubtful(journal.listed(), isAnswered(task));
  return doubt ? { kind: "doubt", ...doubt, ended } : { kind: "cancelled", ended };
}

/** Whether a person has said what became of this try of an effect. */
function isAnswered({ signals }: Running): (key: string, tries: number) => boolean {
  return (key, tries) => signals.some(({ name }) => name === resolutionName(key, tries));
}
