import { PawlError } from "../errors/errors.ts";
import type { Millis, Seal, Task } from "../task/document.ts";
import type { Json } from "../values/json.ts";
import { type Cost, NO_COST, plus } from "./cost.ts";

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
  | (Place & Kept & { readonly kind: "step" })
  | (Place & {
      readonly kind: "intent";
      readonly of: Exclude<CallKind, "step">;
      /** Of the holder that begins an effect. */
      readonly fence?: number;
      /** A wait's deadline: fixed when it began, however often its handler starts. */
      readonly until?: Millis;
      /** The most that a model turn may cost. */
      readonly reserved?: Cost;
    })
  | (Kept & {
      readonly kind: "receipt";
      readonly key: string;
      /** Which of the task's signals ended a wait. */
      readonly signal?: number;
      /** What a model turn cost. */
      readonly cost?: Cost;
    })
  | { readonly kind: "undone" | "unsure"; readonly key: string; readonly why: string };

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
  /** What its model turns cost so far, and what crashes, hand-offs and failures would have cost without the journal. */
  readonly spent: Cost;
  readonly saved: Cost;
  /** Names of parts: each ends with the hash of what it holds. */
  readonly pages: readonly string[];
  readonly recent: readonly Entry[];
  readonly seal?: Seal;
}

export function emptyHead(
  task: { readonly id: string; readonly fence: number; readonly epoch: number; readonly createdAt: Millis },
  version: number,
  stamp: string,
): Head {
  const { id: taskId, fence, epoch, createdAt: born } = task;
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
  };
}

/** How far a journal has come, and what that cost. A document lags behind it when a holder has died. */
export type Reached = Pick<Task, "journaled" | "spent" | "saved">;

/** By the head of a task's journal; by its document, where there is none, or one of another task of the same id. */
export function reachedBy(task: Task, head: Head | undefined): Reached {
  const { journaled, spent, saved } = task;
  if (head?.born !== task.createdAt) return { journaled, spent, saved };
  // Redriven from scratch: what an older journal did counts for nothing, and what it cost was paid.
  const isOlder = head.epoch < task.epoch;
  return { journaled: isOlder ? journaled : head.count, spent: head.spent, saved: head.saved };
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
  const spent = added.reduce((sum, one) => (one.kind === "receipt" ? plus(sum, one.cost) : sum), head.spent);
  const recent = [...head.recent, ...added];
  const isFull = recent.length > RECENT_ENTRIES || JSON.stringify(recent).length > RECENT_CHARS;
  if (!isFull || head.recent.length === 0) return { head: { ...head, stamp, count, spent, recent } };
  return { page: head.recent, head: { ...head, stamp, count, spent, recent: added } };
}

/** Up to here a value is kept in its entry. */
const INLINE_CHARS = 8_000;
/** In UTF-16 units, of which none takes more than three bytes: a part stays below every store's megabyte. */
const PART_CHARS = 300_000;

export function isInline(text: string): boolean {
  return text.length <= INLINE_CHARS;
}

export function splitText(text: string): string[] {
  const parts: string[] = [];
  for (let from = 0; from < text.length; ) {
    let to = Math.min(from + PART_CHARS, text.length);
    // Half of a surrogate pair is no text that a store could keep.
    if (to < text.length && /[\ud800-\udbff]/.test(text[to - 1] as string)) to--;
    parts.push(text.slice(from, to));
    from = to;
  }
  return parts;
}

/** What the journal knows of a call. One whose last try was begun and never closed is "open". */
export interface Known {
  readonly kind: CallKind;
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
  for (const entry of entries) {
    switch (entry.kind) {
      case "step":
        byKey.set(entry.key, { kind: "step", place: entry, tries: 1, state: "done", kept: entry });
        break;
      case "intent": {
        const tries = (byKey.get(entry.key)?.tries ?? 0) + 1;
        const { of: kind, until, when: begun, fence } = entry;
        const more = {
          ...(until !== undefined && { until }),
          ...(begun !== undefined && { begun }),
          ...(fence !== undefined && { fence }),
        };
        byKey.set(entry.key, { kind, place: entry, tries, state: "open", kept: {}, ...more });
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
      default:
        entry satisfies never;
    }
  }
  return byKey;
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
