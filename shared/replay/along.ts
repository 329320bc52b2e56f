import { messageOf } from "../errors/errors.ts";
import type { CallKind } from "../journal/entries.ts";
import type { Call, How, Trail } from "../journal/trail.ts";
import type { ExportedJournal } from "./exported.ts";
import { promptDifference } from "./prompt.ts";

/** What a replay found that today's code does differently. */
export interface Difference {
  /**
   * "agent": it is gone, or can't be loaded. "input": it is not accepted any more. "calls": the handler makes other calls. "error": it throws where it went on.
   * "prompt": a model would be asked something else. "result": the same calls lead to another result.
   */
  readonly kind: "agent" | "input" | "calls" | "error" | "prompt" | "result";
  readonly message: string;
}

/** A call of the handler's in a replay. */
export interface ReplayedCall {
  /** "step read#1" */
  readonly call: string;
  /** None: its result is in the journal. Else what would be done here, and is not. */
  readonly would?: string;
}

/** What has been seen along the way. */
export interface Seen {
  readonly calls: ReplayedCall[];
  readonly differences: Difference[];
  /** Keys of the calls that were made. */
  readonly made: Set<string>;
}

/**
 * Sees every call before anything of it happens. One whose result is in the journal gets it; any other is not made, and the
 * replay ends there.
 */
export function goingAlong(journal: ExportedJournal, seen: Seen): (path: Trail) => Trail {
  return (path) => ({
    enter: (kind, name, how) => {
      let call: Call;
      try {
        call = path.enter(kind, name, how);
      } catch (error) {
        // Its handler may catch it, and go on.
        seen.differences.push({ kind: "calls", message: messageOf(error) });
        throw error;
      }
      const { key } = call;
      seen.made.add(key);
      const isStored = isDone(call, kind, name, journal.at);
      const here = { call: `${kind} ${key}` };
      seen.calls.push(isStored ? here : { ...here, would: wouldDo(kind, call, how, journal) });
      const drift = isStored && how?.request && promptDifference(journal, key, how.request);
      if (drift) seen.differences.push({ kind: "prompt", message: `Turn ${key}: ${drift}` });
      return isStored ? call : { ...call, isEnd: true };
    },
  });
}

/** A sleep has no receipt: it is over when its time is. */
function isDone({ known }: Call, kind: CallKind, name: string, now: number): boolean {
  if (known?.state === "done") return true;
  return kind === "wait" && name === "sleep" && known?.until !== undefined && known.until <= now;
}

function wouldDo(
  kind: CallKind,
  { known, key }: Call,
  how: How | undefined,
  { task }: ExportedJournal,
): string {
  const name = key.replace(/#\d+$/, "");
  switch (kind) {
    case "step":
      return name.startsWith("submit ") ? "submit this child" : "run this step";
    case "effect":
      if (!known) return "run this effect";
      return known.state === "undone"
        ? `run this effect again: try ${known.tries} certainly did not happen`
        : `find out whether try ${known.tries} of this effect happened, or ask a person`;
    case "turn": {
      const model = String(how?.request?.model ?? "the model");
      return known ? `ask ${model} again: the answer was lost` : `ask ${model}`;
    }
    case "wait": {
      if (name === "sleep")
        return known?.until ? `sleep until ${new Date(known.until).toISOString()}` : "sleep";
      const isAnswered = task.signals.some((one) => one.name === name || one.name === `approval:${name}`);
      const deadline = known?.until === undefined ? "" : `, until ${new Date(known.until).toISOString()}`;
      return isAnswered
        ? "take the answer, if it is not taken yet, or wait for one"
        : `wait for it${deadline}`;
    }
    default:
      return kind satisfies never;
  }
}
