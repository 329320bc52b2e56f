import type { HistoryEntry, Millis, Task } from "../../task/document.ts";
import { isFinal } from "../../task/table.ts";
import type { Call } from "./journal.ts";

/** Something that took time: a start of the handler, or a call of it. */
export interface Span {
  readonly kind: "run" | Call["kind"];
  readonly name: string;
  /** Undefined: nobody knows when it began. */
  readonly from?: Millis;
  readonly to: Millis;
  /** "open": it still goes on. "lost": it was cut off, and `to` is when somebody else took over. */
  readonly ending: "done" | "open" | "lost" | "undone" | "unsure";
  /** A run: since when its message lay in the queue. */
  readonly queued?: Millis;
  /** A run that was cut off: the last that its journal heard of it. */
  readonly heard?: Millis;
}

const CLAIMS: ReadonlySet<string> = new Set(["claim", "takeover", "adopt"]);
/** By which others end a run, of which nothing was heard any more. */
const BY_OTHERS: ReadonlySet<string> = new Set([...CLAIMS, "requeue", "exhaust"]);

interface Run {
  readonly fence: number;
  from: Millis;
  queued?: Millis;
}

/** What a task's time went into, in the order in which it began. Replayed calls are in the journal once, so they are here once. */
export function spansOf(task: Task, calls: readonly Call[], now: Millis): Span[] {
  const runs = runsOf(task, calls, now);
  const spans = calls.flatMap((call) => callSpan(call, task, runs, now));
  return [...runs, ...spans].sort((a, b) => (a.from ?? a.to) - (b.from ?? b.to));
}

function runsOf({ history, state }: Task, calls: readonly Call[], now: Millis): Span[] {
  const runs: Span[] = [];
  let open: Run | undefined;
  let queued: Millis | undefined;
  const close = (to: Millis, ending: Span["ending"]) => {
    if (!open) return;
    const { fence, from } = open;
    const heard = ending === "lost" && lastWord(calls, from, to);
    const more = { ...(open.queued !== undefined && { queued: open.queued }), ...(heard && { heard }) };
    runs.push({ kind: "run", name: `fence ${fence}`, from, to, ending, ...more });
    open = undefined;
  };
  for (const event of history) {
    const { at, fence } = event;
    if (BY_OTHERS.has(event.event)) close(at, "lost");
    if (CLAIMS.has(event.event)) open = { fence, from: at, ...(queued !== undefined && { queued }) };
    else if (event.event === "start" && open) open.from = at;
    else if (event.state !== "running") close(at, endingOf(event));
    if (event.state === "dispatched") queued ??= at;
    else queued = undefined;
  }
  if (state === "running") close(now, "open");
  return runs;
}

const endingOf = ({ event }: HistoryEntry): Span["ending"] =>
  event === "retry" || event === "hold" || event === "fail"
    ? "undone"
    : event === "doubt"
      ? "unsure"
      : "done";

/** The newest word in the journal of what a run did. */
function lastWord(calls: readonly Call[], from: Millis, to: Millis): Millis | undefined {
  const words = calls.flatMap(({ at, endedAt }) => [at, endedAt]);
  const during = words.filter((at): at is Millis => at !== undefined && at >= from && at <= to);
  return during.length > 0 ? Math.max(...during) : undefined;
}

function callSpan(call: Call, task: Task, runs: readonly Span[], now: Millis): Span[] {
  const { kind, key: name, at: from, endedAt, state, until } = call;
  const begun = from !== undefined && { from };
  if (endedAt !== undefined)
    return [
      {
        kind,
        name,
        ...begun,
        to: endedAt,
        ending: state === "open" || state === "forgotten" ? "done" : state,
      },
    ];
  if (from === undefined) return [];
  const last = isFinal(task) ? (runs.at(-1)?.to ?? task.updatedAt) : now;
  // A sleep is over when its time is; nothing is stored then.
  if (kind === "wait") {
    const isOver = until !== undefined && until <= last;
    return [
      {
        kind,
        name,
        from,
        to: isOver ? until : last,
        ending: isOver ? "done" : isFinal(task) ? "undone" : "open",
      },
    ];
  }
  const run = runs.find((one) => one.from !== undefined && one.from <= from && from <= one.to);
  if (run?.ending === "open") return [{ kind, name, from, to: now, ending: "open" }];
  return [{ kind, name, from, to: run?.to ?? last, ending: "lost" }];
}

/** Where on a line of 100 a moment lies. */
export interface Scale {
  at(moment: Millis): number;
  /** Long times in which nothing ran are drawn shorter than they were. */
  readonly isFolded: boolean;
}

/** A time in which nothing runs is drawn at most this long, compared to all in which something does. */
const IDLE_SHARE = 0.15;

export function scaleOf(spans: readonly Span[]): Scale {
  const ends = spans.flatMap(({ from, to, queued }) => [from ?? to, to, queued ?? to]);
  const [first, last] = [Math.min(...ends), Math.max(...ends)];
  const pieces = piecesOf(spans, first, last);
  const busy = pieces.reduce((sum, { from, to, isBusy }) => sum + (isBusy ? to - from : 0), 0);
  const most = busy > 0 ? busy * IDLE_SHARE : last - first;
  const drawn = pieces.map(({ from, to, isBusy }) => (isBusy ? to - from : Math.min(to - from, most)));
  const whole = drawn.reduce((sum, one) => sum + one, 0) || 1;
  return {
    isFolded: whole < (last - first) * 0.9,
    at: (moment) => {
      let x = 0;
      for (const [i, { from, to }] of pieces.entries()) {
        const length = drawn[i] ?? 0;
        if (moment >= to) x += length;
        else return (100 * (x + (length * Math.max(0, moment - from)) / (to - from))) / whole;
      }
      return (100 * x) / whole;
    },
  };
}

/** From the first moment to the last: what runs, and what lies between. */
function piecesOf(spans: readonly Span[], first: Millis, last: Millis) {
  const pieces: { from: Millis; to: Millis; isBusy: boolean }[] = [];
  let at = first;
  const until = (to: Millis, isBusy: boolean) => {
    if (to > at) pieces.push({ from: at, to, isBusy });
    at = Math.max(at, to);
  };
  const runs = spans.filter(
    ({ kind }) => kind === "run" || kind === "step" || kind === "turn" || kind === "effect",
  );
  for (const { from, to, heard, ending } of runs) {
    if (from === undefined) continue;
    until(from, false);
    // What came after the last word of a run that was cut off, nobody knows.
    until(ending === "lost" ? (heard ?? from) : to, true);
  }
  until(last, false);
  return pieces;
}
