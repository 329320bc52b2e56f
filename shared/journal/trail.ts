import { PawlError } from "../errors/errors.ts";
import type { TurnRequest } from "../ports/model.ts";
import { type CallKind, type Entry, type Known, known, type Place } from "./entries.ts";

export interface Call extends Place {
  readonly known?: Known;
  /** It has no result, and may not be made: this is only a replay. */
  readonly isEnd?: true;
  /** The call's result is about to be given to the handler. */
  leave(): void;
}

export interface How {
  /** A part of another call, which names it so that it is the same on every run. */
  readonly inner?: boolean;
  /** The same as one before, in other words. */
  readonly repeats?: boolean;
  /** Of a turn: what the model is asked. */
  readonly request?: TurnRequest;
}

/** Follows a handler through its journal. */
export interface Trail {
  enter(kind: CallKind, name: string, how?: How): Call;
}

/**
 * Calls are found by name and ordinal. That the code still is the one that wrote the journal is checked as long as it
 * can be known: until a handler makes calls in parallel, each comes after the same calls on every run, so what the
 * journal has in its place must be this very call. From then on the order may differ from run to run, and so might
 * ordinals: what must not be mixed up needs a name of its own there.
 *
 * Branches may run beside each other though their calls do not: which comes first is up to what they await in between.
 * So a call that is out of place is asked for (`isAwaitedAlone`) whether the handler itself awaits it; one in a branch
 * proves nothing. Branches of a `Promise.race` are not seen.
 */
export function trail(
  entries: readonly Entry[],
  versions: { readonly journal: number; readonly agent: number },
  isAwaitedAlone: () => boolean,
): Trail {
  const byKey = known(entries);
  const byPlace = new Map<number, Known>();
  for (const one of byKey.values()) if (one.place.alone) byPlace.set(one.place.at, one);
  const ordinals = new Map<string, number>();
  let made = 0;
  let underWay = 0;
  let isParallel = false;

  const mismatch = (at: number, here: string, there: string) =>
    new PawlError(
      "journal_mismatch",
      `Call ${at + 1} of the handler is ${here}, but in this task's journal it is ${there}. ` +
        `The journal was begun by version ${versions.journal} of the agent, and this is version ${versions.agent}`,
    );

  return {
    enter: (kind, name, { inner = false, repeats = false } = {}) => {
      checkName(kind, name);
      const ordinal = (ordinals.get(name) ?? 0) + 1;
      ordinals.set(name, ordinal);
      const key = `${name}#${ordinal}`;
      if (!inner) isParallel ||= underWay > 0;
      if (isParallel && !inner && (ordinal > 1 || repeats) && kind !== "step" && name !== "sleep") {
        throw new PawlError(
          "call_invalid",
          `${kind} ${JSON.stringify(name)} is called again by a handler that makes calls in parallel: which is which may differ from run to run. Give each a name of its own`,
        );
      }
      let place = { key, at: made++, alone: !isParallel && !inner };
      const mine = byKey.get(key);
      const there = byPlace.get(place.at);
      const here = `${kind} ${key}`;
      if (mine && mine.kind !== kind) throw mismatch(place.at, here, `${mine.kind} ${key}`);
      const isOther = there && there.place.key !== key;
      const isMoved = mine?.place.alone && mine.place.at !== place.at;
      if (place.alone && (isOther || isMoved)) {
        if (isAwaitedAlone())
          throw mismatch(
            place.at,
            here,
            isOther ? `${there.kind} ${there.place.key}` : `call ${(mine?.place.at ?? 0) + 1}`,
          );
        place = { ...place, alone: false };
      }
      underWay++;
      let left = false;
      const leave = () => {
        if (!left) underWay--;
        left = true;
      };
      return { ...place, ...(mine && { known: mine }), leave };
    },
  };
}

function checkName(kind: CallKind, name: unknown): void {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to refuse
  if (typeof name === "string" && /^[^#\u0000-\u001f\u007f]{1,128}$/.test(name)) return;
  const shown = JSON.stringify(name) ?? typeof name;
  throw new PawlError(
    "call_invalid",
    `The name of a ${kind} is ${shown.slice(0, 200)}; it should be a text of 1 to 128 characters without # and control characters`,
  );
}
