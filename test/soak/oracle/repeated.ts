import type { Look } from "../../../infra/drills/outside/board.ts";
import type { Deed } from "../deeds.ts";
import type { Evidence, Wrong } from "./judge.ts";
import type { StoredTask } from "./stored.ts";

/**
 * Calls that were made again although the journal had their result, effects that were done twice, and results that are not
 * what the stored calls returned. An entry says when it was appended: whatever began later did so in spite of it, but for what
 * was `late`: on its way when its process froze.
 */
export function repeated({ deeds, looks, stored }: Evidence, late: readonly Deed[]): Wrong[] {
  const byTask = Map.groupBy(deeds, ({ id }) => id);
  const looksOf = Map.groupBy(looks, ({ path }) => path.split("/")[0]);
  return [...stored.values()].flatMap((task): Wrong[] => {
    const { id, calls, mail } = task;
    const made = Map.groupBy(byTask.get(id) ?? [], ({ deed }) => deed);
    const wrong = (detail: string): Wrong => ({ kind: "repeated", id, detail });
    const again = [...calls].flatMap(([deed, { storedAt }]) =>
      (made.get(deed) ?? [])
        .filter((one) => one.at > storedAt && !late.includes(one))
        .map(({ at, run }) => wrong(`${deed} was stored at ${storedAt}, and made again at ${at} by ${run}`)),
    );
    // The post, and a mail that is keyed, go to a receiver that does one thing per key.
    const mails = mail === "keyed" ? [] : (made.get("mail") ?? []);
    const isTwice = mails.length > 1 && !wasDenied(mails, looksOf.get(id) ?? []);
    const twice = isTwice
      ? [wrong(`mail was done ${mails.length} times: ${mails.map(moment).join(", ")}`)]
      : [];
    return [...again, ...twice, ...unfaithful(task).map(wrong)];
  });
}

const moment = ({ at, run }: Deed) => `at ${at} by ${run}`;

/** The author's verify said that it had not happened, before the first of them arrived. */
function wasDenied(mails: readonly Deed[], looks: readonly Look[]): boolean {
  const first = Math.min(...mails.map(({ at, arrived = at }) => arrived));
  return looks.some(({ found, at }) => !found && at < first);
}

/** A completed task's result is made of what its stored calls returned, whichever execution they were made in. */
function unfaithful({ state, calls, result }: StoredTask): string[] {
  if (state !== "completed") return [];
  return Object.entries(result).flatMap(([name, value]) => {
    const kept = calls.get(RESULTS[name] ?? name)?.value;
    const text = JSON.stringify(value);
    // Of a turn the journal keeps the whole answer.
    const isKept = name === "text" ? JSON.stringify(kept)?.includes(text) : JSON.stringify(kept) === text;
    return isKept ? [] : [`its result has ${name} ${text}, and the journal has ${JSON.stringify(kept)}`];
  });
}

/** Which call each part of a result comes from. */
const RESULTS: Readonly<Record<string, string>> = {
  prepared: "prepare",
  text: "ask/turn 2",
  mailed: "mail",
  finished: "finish",
};
