import type { Entry } from "../../../shared/journal/entries.ts";
import type { Deed } from "../outside/acts.ts";
import type { Broken } from "./broken.ts";
import type { Evidence, Stored } from "./evidence.ts";

const wrong = (detail: string): Broken => ({ promise: "never repeated", detail });

/** Calls that began after their result was stored, and handlers that began after their task was over. */
export function repeated({ deeds, stored, claims }: Evidence): Broken[] {
  const calls = [...stored.values()].flatMap(({ task, entries }) => {
    const storedAt = storedCalls(entries);
    // What a redrive has done again on purpose: all but effects.
    const redriven = task.history.findLast(({ event }) => event === "redrive")?.at ?? 0;
    const own = deeds.filter(({ id, kind, at }) => id === task.id && (kind === "post" || at > redriven));
    const isStored = ({ deed = "", kind, at }: Deed) => {
      const stored = storedAt.get(deed) ?? Infinity;
      return at > stored && (kind === "post" || stored > redriven);
    };
    const late = own.find(isStored);
    return late ? [wrong(`${task.id}: "${late.deed}" was stored, and done again by ${late.run}`)] : [];
  });
  const over = claims.flatMap(({ over: id, at, why }) => {
    const late = deeds.find((deed) => deed.id === id && deed.what === "start" && deed.at > at);
    return late ? [wrong(`${id}: its handler was begun again by ${late.run}, after ${why}`)] : [];
  });
  return [...calls, ...over];
}

/** When each step, turn and effect was first stored, by the name that its deeds have. */
function storedCalls(entries: readonly Entry[]): Map<string, number> {
  const found = new Map<string, number>();
  for (const entry of entries) {
    if (entry.kind !== "step" && entry.kind !== "receipt") continue;
    const name = entry.key.replace(/#1$/, "");
    if (!found.has(name)) found.set(name, entry.when ?? Infinity);
  }
  return found;
}

/** Effects that happened twice at a receiver that does not honour their key, and those that nobody was asked about. */
export function effects({ deeds, stored, looks }: Evidence): Broken[] {
  const posts = deeds.filter(({ kind }) => kind === "post");
  return [...stored.values()].flatMap((one) => {
    const own = Map.groupBy(
      posts.filter(({ id }) => id === one.task.id),
      ({ deed }) => deed ?? "",
    );
    return [...own].flatMap(([deed, all]) => [...twice(one, deed, all, looks), ...dropped(one, deed)]);
  });
}

const howOf = ({ task }: Stored, deed: string) =>
  (task.input.acts as { name?: string; how?: string }[]).find(({ name }) => name === deed)?.how;

function twice(one: Stored, deed: string, all: readonly Deed[], looks: Evidence["looks"]): Broken[] {
  // A receiver that honours the key does it once, however often it is sent.
  if (all.length < 2 || howOf(one, deed) === "keyed") return [];
  const denied = looks.some(
    ({ path, found, at }) => path.startsWith(one.task.id) && !found && at < (all[0]?.at ?? 0),
  );
  if (denied) return [];
  return [
    wrong(
      `${one.task.id}: effect "${deed}" was done ${all.length} times, by ${all.map(({ run }) => run).join(" and ")}`,
    ),
  ];
}

/** It happened, nobody stored that it did, and the task ended without anybody having been asked. */
function dropped({ task, entries }: Stored, deed: string): Broken[] {
  const isStored = storedCalls(entries).has(deed);
  const wasAsked = task.history.some(({ event }) => event === "doubt");
  const isOver = ["completed", "failed", "cancelled"].includes(task.state);
  if (isStored || wasAsked || !isOver) return [];
  return [wrong(`${task.id} is ${task.state}, and nobody was asked whether "${deed}" had happened: it had`)];
}
