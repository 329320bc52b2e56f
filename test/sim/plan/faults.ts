import type { Mishap } from "../world/process.ts";
import type { Random } from "../world/random.ts";
import type { ProcessFault, ServerFault } from "./plan.ts";
import type { Theme } from "./theme.ts";

const SECOND = 1_000;

/** Requests by which a task gets on. */
const WORDS = [
  "replace",
  "put journal",
  "get",
  "get journal",
  "+WPI",
  "newest delivery",
  "+ACK",
  "publish",
  "create",
  "-NAK",
  "is it held",
  "Attesting",
];

/** The request at which most faults of a theme come. While a turn is under way, its holder only beats. */
const AIMS: Partial<Record<Theme, string>> = { late: "put journal", money: "+WPI" };

export function makeFaults(chance: Random, theme: Theme): ProcessFault[] {
  const isAimed = theme !== "anything";
  const count = isAimed ? chance.pick([1, 1, 2, 2, 3]) : chance.pick([0, 1, 1, 2, 3, 5]);
  return Array.from({ length: count }, () => {
    const isRunners = isAimed || chance.chance(0.8);
    const isAny = chance.chance(0.15);
    return {
      process: isRunners ? "any runner" : chance.pick(["operator", "dispatch"]),
      what: isAny ? "" : chance.chance(0.6) ? (AIMS[theme] ?? chance.pick(WORDS)) : chance.pick(WORDS),
      after: isAny ? chance.int(60) : chance.pick([0, 0, 0, 1, 1, 2, 3, 5, 8]),
      mishap: makeMishap(chance, theme),
    };
  });
}

function makeMishap(chance: Random, theme: Theme): Mishap {
  const ms = Math.round(chance.pick([200, 3_000, 12_000, 25_000, 35_000, 70_000]) * chance.between(0.7, 1.3));
  switch (theme) {
    case "copies":
      if (chance.chance(0.7)) return { kind: "deposed", ms: Math.round(chance.between(10, 130) * SECOND) };
      break;
    case "late":
      if (chance.chance(0.7))
        return { kind: "dies", when: "after", late: Math.round(chance.between(40, 110) * SECOND) };
      break;
    case "money":
      if (chance.chance(0.7)) return { kind: "dies", when: "before" };
      break;
    case "stop":
      if (chance.chance(0.7)) return { kind: "told to stop" };
      break;
    case "takeover":
      if (chance.chance(0.7)) return absence(chance, Math.round(absenceOf(chance) * SECOND));
      break;
    default:
      break;
  }
  const roll = chance.int(100);
  if (roll < 35) return { kind: "dies", when: chance.pick(["before", "after"] as const) };
  if (roll < 65) return absence(chance, ms);
  if (roll < 75) return { kind: "late", ms };
  if (roll < 88) return { kind: "unanswered" };
  if (roll < 91) return { kind: "refused" };
  if (roll < 94) return { kind: "set", ms: Math.round(chance.between(-1_200, 1_200)) };
  return { kind: "told to stop" };
}

/** Shorter than a lease, about as long, and longer than a successor's wait, in seconds. */
const ABSENCES = [
  [7, 14],
  [14, 32],
  [40, 95],
] as const;

function absenceOf(chance: Random): number {
  const [least, most] = chance.pick(ABSENCES);
  return chance.between(least, most);
}

/** Frozen, or cut off. */
function absence(chance: Random, ms: number): Mishap {
  if (chance.chance(0.5)) return { kind: "freezes", ms, asleep: chance.chance(0.5) };
  return {
    kind: "cut",
    from: chance.pick(["bus", "bus", "store", "both"] as const),
    ms,
    loses: chance.pick(["requests", "answers"] as const),
    ...(chance.chance(0.1) && { isForGood: true }),
  };
}

export function makeServerFaults(chance: Random, tasks: readonly string[], theme: Theme): ServerFault[] {
  const count =
    theme === "takeover" || theme === "copies" ? chance.pick([0, 1, 1, 2]) : chance.pick([0, 0, 0, 1, 1, 2]);
  return Array.from({ length: count }, (): ServerFault => {
    const at = Math.round(chance.between(0, chance.pick([15, 40])) * SECOND);
    const roll = chance.int(100);
    if (roll < 50)
      return {
        at,
        kind: "the broker is killed",
        ms: Math.round(chance.pick([20, 800, 6_000, 40_000])),
        forgets: chance.pick([0, 50, 3_000, 30_000]),
      };
    if (roll < 70) return { at, kind: "the store is away", ms: chance.pick([500, 8_000, 30_000]) };
    if (roll < 80 || (theme === "takeover" && roll > 84))
      return chance.chance(0.7)
        ? { at, kind: "the consumer is changed", ackWait: chance.pick([1_000, 5_000]) }
        : { at, kind: "the consumer is changed", maxDeliver: 2 };
    if (roll < 90) return { at, kind: "a message vanishes" };
    return { at, kind: "a message is published by hand", task: chance.pick(tasks) };
  });
}
