import { PawlError } from "../errors/errors.ts";
import type { Redriven } from "../task/document.ts";
import { isJsonObject } from "../values/json.ts";
import { type Cost, minus, NO_COST, plus } from "./cost.ts";
import { doubtful, type Entry, type Head, type Known, known, type Range } from "./entries.ts";

type Calls = ReadonlyMap<string, Known>;

/**
 * The entry by which a holder forgets what a redrive wants forgotten. It is the holder's to write, after its fence:
 * whoever redrives a task holds nothing. `isAgain`: what is kept would have been paid for again.
 */
export function redrivenEntry(
  entries: readonly Entry[],
  { dispatch, again, from }: Redriven,
  head: Head,
  isAgain: boolean,
): Entry {
  const calls = known(entries);
  const isWanted =
    from === undefined ? isOneOf(again ?? []) : (one: Known) => one.since >= from && !isKept(one);
  const isKept = keptOf(calls);
  const forgets = rangesOf(calls, isWanted);
  const forgotten = costOf(entries, calls, isWanted);
  const kept = minus(minus(head.spent, head.forgotten), forgotten);
  const saved = isAgain ? kept : NO_COST;
  return { kind: "redriven", key: `redrive ${dispatch}`, dispatch, forgets, forgotten, saved };
}

function isOneOf(again: readonly number[]): (call: Known) => boolean {
  const wanted = new Set(again);
  return ({ since, kind }) => wanted.has(since) && kind !== "effect";
}

/** Calls that are forgotten next to each other are one range: a journal of thousands fits into one entry. */
function rangesOf(calls: Calls, isWanted: (call: Known) => boolean): Range[] {
  const ranges: [number, number][] = [];
  let last: [number, number] | undefined;
  for (const call of [...calls.values()].sort((a, b) => a.since - b.since)) {
    if (!isWanted(call)) last = undefined;
    else if (last) last[1] = call.since;
    else {
      last = [call.since, call.since];
      ranges.push(last);
    }
  }
  return ranges;
}

function costOf(entries: readonly Entry[], calls: Calls, isWanted: (call: Known) => boolean): Cost {
  return entries.reduce((sum, entry, at) => {
    const call = calls.get(entry.key);
    const isCounted = entry.kind === "receipt" && call && at >= call.since && isWanted(call);
    return isCounted ? plus(sum, entry.cost) : sum;
  }, NO_COST);
}

/**
 * What is not done again though it is after the entry that somebody chose: effects; children, which are tasks of their
 * own, and what they returned; and of a conversation with a model all that came before its last effect. A tool's effect
 * is known by the id that the model gave it in a turn: that turn asked again, it would be another effect, and happen twice.
 */
function keptOf(calls: Calls): (call: Known) => boolean {
  const spoken = new Set([...calls.keys()].flatMap((key) => /^(.*)\/turn \d+#\d+$/.exec(key)?.[1] ?? []));
  const lastEffect = new Map<string, number>();
  for (const [key, { kind, state, since }] of calls)
    if (kind === "effect" && state !== "undone")
      for (const name of beginnings(key, spoken))
        lastEffect.set(name, Math.max(since, lastEffect.get(name) ?? 0));
  return ({ kind, place, since, kept }) =>
    kind === "effect" ||
    isChild(kind, place.key, kept.value) ||
    beginnings(place.key, spoken).some((name) => since < (lastEffect.get(name) ?? 0));
}

/** The conversations that a call may be a part of, by its key. */
function beginnings(key: string, spoken: ReadonlySet<string>): string[] {
  return [...key.matchAll(/\//g)].map(({ index }) => key.slice(0, index)).filter((name) => spoken.has(name));
}

function isChild(kind: Known["kind"], key: string, value: unknown): boolean {
  if (!key.startsWith("submit ")) return false;
  if (kind === "step") return typeof value === "string" && /^c-[0-9a-f]{40}$/.test(value);
  return kind === "wait" && isJsonObject(value) && "result" in value;
}

/** How many entries are named to somebody who chose one that is not there. */
const NAMED = 30;

/** Where the entry is that a redrive begins from: named as the journal has it, or without its ordinal if it is the only one. */
export function chosenEntry(entries: readonly Entry[], taskId: string, name: string): number {
  const calls = known(entries);
  const isNamed = (key: string) => key === name || key.replace(/#\d+$/, "") === name;
  const [found, ...others] = calls.has(name) ? [name] : [...calls.keys()].filter(isNamed);
  const call = found === undefined || others.length > 0 ? undefined : calls.get(found);
  if (!call)
    throw new PawlError(
      "redrive_refused",
      `Task ${taskId}'s journal has ${others.length > 0 ? `${others.length + 1} entries` : "no entry"} ${JSON.stringify(name.slice(0, 200))}. It has ${listOf(calls)}`,
    );
  if (
    (call.kind === "turn" || call.kind === "step") &&
    keptOf(calls)(call) &&
    !isChild(call.kind, found as string, call.kept.value)
  )
    throw new PawlError(
      "redrive_refused",
      `Task ${taskId}: ${found} is followed by an effect that the model asked for in the same conversation, and would ask for again. Choose a later entry: ${listOf(calls)}`,
    );
  return call.since;
}

function listOf(calls: Calls): string {
  const keys = [...calls].sort(([, a], [, b]) => a.since - b.since).map(([key]) => key);
  if (keys.length === 0) return "none";
  const more = keys.length > NAMED ? `${keys.length - NAMED} more, and ` : "";
  return more + keys.slice(-NAMED).join(", ");
}

/**
 * An effect in doubt from before the last redrive, to which its handler has not come again: on its new way it may pass
 * by. Somebody has to say first whether it happened.
 */
export function passedBy(
  entries: readonly Entry[],
  isAnswered: (effect: string, tries: number) => boolean,
): { effect: string; tries: number } | undefined {
  const redriven = entries.findLastIndex(({ kind }) => kind === "redriven");
  if (redriven < 0) return undefined;
  const calls = known(entries);
  const isNewer = (effect: string) => (calls.get(effect)?.newest ?? 0) > redriven;
  return doubtful(entries, (effect, tries) => isNewer(effect) || isAnswered(effect, tries));
}
