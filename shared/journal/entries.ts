import { PawlError } from "../errors/errors.ts";
import type { Millis, Seal, Task } from "../task/document.ts";
import type { Json } from "../values/json.ts";
import type { Asked } from "./asked.ts";
import { type Cost, NO_COST, plus } from "./cost.ts";
import type { Logs } from "./logs.ts";

/** What an entry keeps: a small value in the entry, a large one in parts beside the journal. Neither: undefined. */
export interface Kept {
  readonly value?: Json;
  readonly parts?: readonly string[];
}

/** Where in the handler a call was made. */
export interface Place {
  /** Name and ordinal: the third call of "read" is "read#3". */
  readonly key: string;
  /** How many calls the handler had made before. */
  readonly at: number;
  /** Nothing else was under way, so the calls before this one are the same on every run of the same code. */
  readonly alone: boolean;
}

/**
 * What a handler did, in the order in which it was stored. What takes more than one moment begins with its intent;
 * "undone" says that a try certainly did not happen, "unsure" that it is over and nobody knows.
 */
export type Entry = Said & {
  /** When it was appended; those of older journals don't say. For people, and for a parent's looks at its child. */
  readonly when?: Millis;
};

type Said =
  | (Place &
      Kept & {
        readonly kind: "step";
        /** Milliseconds from its beginning to its end. */
        readonly took?: number;
        /** What a tool was given. */
        readonly asked?: Asked;
      })
  | (Place & {
      readonly kind: "intent";
      readonly of: Exclude<CallKind, "step">;
      /** Of the holder that begins an effect. */
      readonly fence?: number;
      /** It was begun before, and came to nothing that is known. */
      readonly again?: true;
      /** A wait's deadline: fixed when it began, however often its handler starts. */
      readonly until?: Millis;
      /** The most that a model turn may cost. */
      readonly reserved?: Cost;
      /** What the model or a tool was given, with the first try. */
      readonly asked?: Asked;
      /** Of a turn, a hash of its whole request: whether other code would ask the same. */
      readonly askedHash?: string;
    })
  | (Kept & {
      readonly kind: "receipt";
      readonly key: string;
      /** Which of the task's signals ended a wait. */
      readonly signal?: number;
      /** What a model turn cost. */
      readonly cost?: Cost;
    })
  | { readonly kind: "undone" | "unsure"; readonly key: string; readonly why: string }
  | {
      /** Calls before it are forgotten: whoever comes next makes them again. Effects never are. */
      readonly kind: "redriven";
      /** "redrive 5": no call's, which all end with an ordinal. */
      readonly key: string;
      /** The dispatch by which the task was redriven. */
      readonly dispatch: number;
      /** Calls that began at these entries, counted from 0, both ends included. */
      readonly forgets: readonly Range[];
      /** What the turns among them cost, which stays spent; and what the turns that are kept save this time. */
      readonly forgotten: Cost;
      readonly saved: Cost;
    };

export type Range = readonly [first: number, last: number];

export type CallKind = "step" | "effect" | "turn" | "wait";

/**
 * The journal's one mutable document: a chain of compare-and-set writes. An entry exists once the head lists it; older
 * ones are paged out, so that a long journal costs no more per entry than a short one.
 */
export interface Head {
  readonly v: 1;
  readonly taskId: string;
  /** When the task was created: another task of the same id, after this one was forgotten, has another journal. */
  readonly born: Millis;
  /** The task's when the journal began. */
  readonly epoch: number;
  /** The newest holder that opened it: an older one's append names a revision that is gone. */
  readonly fence: number;
  /** The agent's version when the journal began. */
  readonly version: number;
  readonly stamp: string;
  readonly count: number;
  /** How many of them are no progress: tries that were begun again, or came to nothing. None: none. */
  readonly again?: number;
  /** What its model turns cost so far, and what crashes, hand-offs and failures would have cost without the journal. */
  readonly spent: Cost;
  readonly saved: Cost;
  /** Of what was spent, on turns that redrives have forgotten: no later execution saves it. None: nothing. */
  readonly forgotten?: Cost;
  /** The newest redrive that it knows of, by its dispatch. */
  readonly redriven?: number;
  /** Names of parts: each ends with the hash of what it holds. */
  readonly pages: readonly string[];
  readonly recent: readonly Entry[];
  /** What its handler has logged and its document does not have yet. */
  readonly logs?: Logs;
  readonly seal?: Seal;
}

export function emptyHead(
  task: Pick<Task, "id" | "fence" | "epoch" | "createdAt" | "redriven">,
  version: number,
  stamp: string,
): Head {
  const { id: taskId, fence, epoch, createdAt: born, redriven } = task;
  return {
    v: 1,
    taskId,
    born,
    epoch,
    fence,
    version,
    stamp,
    count: 0,
    spent: NO_COST,
    saved: NO_COST,
    pages: [],
    recent: [],
    // Nothing of it can be forgotten that was there before.
    ...(redriven && { redriven: redriven.dispatch }),
  };
}

/** How far a journal has come, and what that cost. A document lags behind it when a holder has died. */
export type Reached = Pick<Task, "journaled" | "again" | "spent" | "saved">;

/** As a document has it. */
export function farOf({
  journaled,
  again,
}: {
  readonly journaled: number;
  readonly again?: number | undefined;
}) {
  return { journaled, ...(again && { again }) };
}

/** By the head of a task's journal; by its document, where there is none, or one of another task of the same id. */
export function reachedBy(task: Task, head: Head | undefined): Reached {
  const { spent, saved } = task;
  if (head?.born !== task.createdAt) return { ...farOf(task), spent, saved };
  // Redriven from scratch: what an older journal did counts for nothing, and what it cost was paid.
  const far = head.epoch < task.epoch ? farOf(task) : farOf({ journaled: head.count, again: head.again });
  return { ...far, spent: head.spent, saved: head.saved };
}

const RECENT_ENTRIES = 50;
const RECENT_CHARS = 48_000;

/** How many of the entries that wait fit into one write: at least one. */
export function fitting(waiting: readonly Entry[]): number {
  let chars = 0;
  for (const [i, entry] of waiting.entries()) {
    chars += JSON.stringify(entry).length;
    if (i > 0 && (i >= RECENT_ENTRIES || chars > RECENT_CHARS)) return i;
  }
  return waiting.length;
}

export const MOST_ENTRIES = 20_000;

/** The head with more entries. `page`: those that make room, to be stored, and its name listed, before the head is. */
export function extended(
  head: Head,
  added: readonly Entry[],
  stamp: string,
): { head: Head; page?: readonly Entry[] } {
  const count = head.count + added.length;
  if (count > MOST_ENTRIES) {
    throw new PawlError(
      "journal_full",
      `Task ${head.taskId}'s journal would have ${count} entries; ${MOST_ENTRIES} is the most`,
    );
  }
  const next = { ...added.reduce(counted, head), stamp, count };
  const recent = [...head.recent, ...added];
  const isFull = recent.length > RECENT_ENTRIES || JSON.stringify(recent).length > RECENT_CHARS;
  if (!isFull || head.recent.length === 0) return { head: { ...next, recent } };
  return { page: head.recent, head: { ...next, recent: added } };
}

/** What an entry adds to its journal's book. */
function counted(head: Head, entry: Entry): Head {
  const isNothing = entry.kind === "undone" || entry.kind === "unsure";
  if (isNothing || (entry.kind === "intent" && entry.again)) return { ...head, again: (head.again ?? 0) + 1 };
  if (entry.kind === "receipt") return { ...head, spent: plus(head.spent, entry.cost) };
  if (entry.kind !== "redriven") return head;
  const forgotten = plus(head.forgotten ?? NO_COST, entry.forgotten);
  return { ...head, redriven: entry.dispatch, forgotten, saved: plus(head.saved, entry.saved) };
}

/** What the journal knows of a call. One whose last try was begun and never closed is "open". */
export interface Known {
  readonly kind: CallKind;
  /** Where it begins: the entry of its first try, counted from 0; and that of its newest. */
  readonly since: number;
  readonly newest: number;
  /** How often an effect was begun. */
  readonly tries: number;
  readonly place: Place;
  readonly state: "done" | "open" | "unsure" | "undone";
  readonly kept: Kept;
  readonly until?: Millis;
  /** When its newest try began, where the journal says. */
  readonly begun?: Millis;
  readonly signal?: number;
  /** Of the holder that began an effect last. */
  readonly fence?: number;
}

/** Folds entries into what is known by key. */
export function known(entries: readonly Entry[]): Map<string, Known> {
  const byKey = new Map<string, Known>();
  for (const [at, entry] of entries.entries()) {
    const here = { since: byKey.get(entry.key)?.since ?? at, newest: at };
    switch (entry.kind) {
      case "step":
        byKey.set(entry.key, { ...here, kind: "step", place: entry, tries: 1, state: "done", kept: entry });
        break;
      case "intent": {
        const tries = (byKey.get(entry.key)?.tries ?? 0) + 1;
        const { of: kind, until, when: begun, fence } = entry;
        const more = {
          ...(until !== undefined && { until }),
          ...(begun !== undefined && { begun }),
          ...(fence !== undefined && { fence }),
        };
        byKey.set(entry.key, { ...here, kind, place: entry, tries, state: "open", kept: {}, ...more });
        break;
      }
      case "receipt":
      case "undone":
      case "unsure": {
        const before = byKey.get(entry.key);
        if (!before)
          throw new PawlError(
            "journal_mismatch",
            `The journal has a ${entry.kind} of ${entry.key} without its intent`,
          );
        const state = entry.kind === "receipt" ? "done" : entry.kind;
        const isReceipt = entry.kind === "receipt";
        const signal = isReceipt && entry.signal !== undefined && { signal: entry.signal };
        byKey.set(entry.key, { ...before, state, kept: isReceipt ? entry : {}, ...signal });
        break;
      }
      case "redriven":
        forget(byKey, entry.forgets);
        break;
      default:
        entry satisfies never;
    }
  }
  return byKey;
}

/** Calls that are kept though others before them are forgotten may come at another place than before, or not at all. */
function forget(byKey: Map<string, Known>, forgets: readonly Range[]): void {
  const from = Math.min(...forgets.map(([first]) => first));
  for (const [key, call] of byKey) {
    const { since, place } = call;
    if (forgets.some(([first, last]) => since >= first && since <= last)) byKey.delete(key);
    else if (since > from) byKey.set(key, { ...call, place: { ...place, alone: false } });
  }
}

/** What began and has no end that anyone knows of: the first effect that a person has yet to answer for. */
export function doubtful(
  entries: readonly Entry[],
  isAnswered: (effect: string, tries: number) => boolean,
): { effect: string; tries: number } | undefined {
  const open = [...known(entries).entries()].find(
    ([key, { kind, state, tries }]) =>
      kind === "effect" && (state === "open" || state === "unsure") && !isAnswered(key, tries),
  );
  return open && { effect: open[0], tries: open[1].tries };
}

/** The signal by which a person answers for one try of an effect: the next try, in doubt again, is a new question. */
export function resolutionName(key: string, tries: number): string {
  return `effect ${key} try ${tries}`;
}
