import type { Random } from "../world/random.ts";

/** What a generated handler does: one call, or several of them. Names are unique in a program, but for what a loop repeats. */
export type Action =
  | { readonly do: "step"; readonly name: string; readonly ms: number; readonly failsUntil: number }
  | {
      readonly do: "effect";
      readonly name: string;
      readonly ms: number;
      readonly verify: boolean;
      readonly honoursKey: boolean;
      /** On which of its tries it throws, and whether it has happened by then. */
      readonly throws: "never" | "after it happened" | "before it happened" | "retry";
    }
  | {
      readonly do: "llm";
      readonly name: string;
      readonly turns: number;
      readonly tools: "none" | "read-only" | "effects";
    }
  /** Something that is not journaled: it may happen once in every execution, but never in two at once. */
  | { readonly do: "work"; readonly name: string; readonly ms: number }
  /** Goes on for so long whatever its signal says: less than the grace of whoever is told to stop. */
  | { readonly do: "ignore"; readonly name: string; readonly ms: number }
  | { readonly do: "hang"; readonly heeds: boolean; readonly untilAttempt: number }
  /** Takes its process with it, so many times. */
  | { readonly do: "crash"; readonly name: string; readonly times: number }
  | { readonly do: "sleep"; readonly ms: number }
  | { readonly do: "approval"; readonly name: string; readonly timeout?: number; readonly catches: boolean }
  | { readonly do: "event"; readonly name: string; readonly timeout?: number }
  | { readonly do: "child"; readonly key: string; readonly awaits: boolean }
  | { readonly do: "throw"; readonly untilAttempt: number; readonly fatal: boolean }
  /** A step that makes other calls. A wait among them is refused: it would never end. */
  | { readonly do: "nested"; readonly name: string; readonly body: readonly Action[] }
  | { readonly do: "loop"; readonly times: number; readonly body: readonly Action[] }
  | {
      readonly do: "parallel";
      readonly how: "all" | "race" | "settled";
      readonly branches: readonly (readonly Action[])[];
    }
  /** Another version of the agent does something else here. */
  | { readonly do: "version"; readonly before: readonly Action[]; readonly from2: readonly Action[] };

export type Program = readonly Action[];

/** Within the grace, and beyond it; never as long as a successor waits. */
const IGNORES = [3_000, 9_000, 14_000] as const;

/** How programs are made. */
interface Making {
  readonly random: Random;
  readonly isChild: boolean;
  readonly pace: keyof typeof paces;
  names: number;
}

/** How long the parts of a program take, in milliseconds. */
export const paces = {
  any: [0, 1, 20, 500, 4_000, 9_000, 26_000],
  /** So that a holder that is gone for a while still has something to do. */
  slow: [20, 4_000, 9_000, 15_000, 26_000],
  /** And with code that does not listen. */
  deaf: [20, 500, 4_000],
  /** And almost all of it is asking a model. */
  paid: [20, 500],
} as const;

export function makeProgram(random: Random, pace: keyof typeof paces = "any", isChild = false): Program {
  const making: Making = { random, isChild, pace, names: 0 };
  if (pace === "deaf") return [...slowly(making), ignore(making), work(making)];
  if (pace === "slow") return slowly(making);
  if (pace === "paid") return paid(making);
  // Most are small: what goes wrong goes wrong with little, and little is quickly played.
  const most = isChild || random.chance(0.7) ? 2 : 5;
  return actions(making, 1 + random.int(most), 0);
}

/** Mostly work of some length, one thing after the other or beside each other. */
function slowly(making: Making): Action[] {
  const { random } = making;
  const some = () => {
    const all = actions(making, 1, 1);
    return random.chance(0.5) ? [work(making), ...all] : all;
  };
  return Array.from({ length: 1 + random.int(3) }, () => some()).flat();
}

/** Turns one after the other, or beside each other. */
function paid(making: Making): Action[] {
  const { random } = making;
  const all = Array.from({ length: 1 + random.int(3) }, () => ask(making));
  if (all.length === 1 || random.chance(0.5)) return all;
  return [{ do: "parallel", how: "all", branches: all.map((one) => [one]) }];
}

function ask(making: Making): Action {
  const { random } = making;
  return {
    do: "llm",
    name: named(making, "ask"),
    turns: 1 + random.int(3),
    tools: random.pick(["none", "read-only", "effects"] as const),
  };
}

function ignore(making: Making): Action {
  return { do: "ignore", name: named(making, "ignore"), ms: making.random.pick(IGNORES) };
}

function work(making: Making): Action {
  return {
    do: "work",
    name: named(making, "work"),
    ms: making.random.pick(making.pace === "any" ? paces.slow : paces[making.pace]),
  };
}

function actions(making: Making, count: number, depth: number): Action[] {
  return Array.from({ length: count }, () => action(making, depth));
}

function named(making: Making, what: string): string {
  return `${what}${++making.names}`;
}

function action(making: Making, depth: number): Action {
  const { random, isChild } = making;
  const ms = random.pick(paces[making.pace]);
  const roll = random.int(100);
  if (roll < 20)
    return {
      do: "step",
      name: named(making, "step"),
      ms,
      failsUntil: random.chance(0.15) ? 1 + random.int(3) : 0,
    };
  if (roll < 42)
    return {
      do: "effect",
      name: named(making, "effect"),
      ms: Math.min(ms, 9_000),
      verify: random.chance(0.5),
      honoursKey: random.chance(0.3),
      throws: random.chance(0.75)
        ? "never"
        : random.pick(["after it happened", "before it happened", "retry"] as const),
    };
  if (roll < 50) return ask(making);
  if (roll < 60) return { do: "work", name: named(making, "work"), ms };
  // Not beside others: what a handler has begun, and does not await when it throws, has its aborted signal only.
  if (roll < 63 && depth === 0) return ignore(making);
  if (roll < 65) return { do: "hang", heeds: random.chance(0.5), untilAttempt: 1 };
  if (roll < 66) return { do: "crash", name: named(making, "crash"), times: random.pick([1, 2, 1_000]) };
  if (roll < 69) return { do: "sleep", ms: random.pick([10, 2_000, 20_000, 70_000]) };
  if (roll < 74)
    return {
      do: "approval",
      name: named(making, "approve"),
      catches: random.chance(0.5),
      ...(random.chance(0.3) && { timeout: 30_000 }),
    };
  if (roll < 78)
    return { do: "event", name: named(making, "event"), ...(random.chance(0.4) && { timeout: 30_000 }) };
  if (roll < 84 && !isChild && depth === 0)
    return { do: "child", key: named(making, "child"), awaits: random.chance(0.7) };
  if (roll < 88) return { do: "throw", untilAttempt: random.pick([1, 1, 2, 9]), fatal: random.chance(0.2) };
  if (depth >= 2) return { do: "step", name: named(making, "step"), ms, failsUntil: 0 };
  if (roll < 89) return { do: "nested", name: named(making, "nested"), body: nestedBody(making) };
  if (roll < 91) return { do: "loop", times: 2 + random.int(2), body: loopBody(making) };
  if (roll < 98)
    return {
      do: "parallel",
      how: random.pick(["all", "all", "race", "settled"] as const),
      branches: Array.from({ length: 2 + random.int(2) }, () =>
        actions(making, 1 + random.int(2), depth + 1),
      ),
    };
  return {
    do: "version",
    before: actions(making, 1, depth + 1),
    from2: actions(making, 1 + random.int(2), depth + 1),
  };
}

function nestedBody(making: Making): Action[] {
  const { random } = making;
  if (random.chance(0.15)) return [{ do: "approval", name: named(making, "approve"), catches: false }];
  const [ms, verify] = [random.pick(paces[making.pace]), random.chance(0.5)];
  const step: Action = { do: "step", name: named(making, "step"), ms, failsUntil: 0 };
  if (random.chance(0.5)) return [step];
  const name = named(making, "effect");
  return [step, { do: "effect", name, ms: 0, verify, honoursKey: false, throws: "never" }];
}

/** Names repeat in a loop, which only steps may beside others. */
function loopBody(making: Making): Action[] {
  const { random } = making;
  return [{ do: "step", name: named(making, "step"), ms: random.pick([0, 20, 500]), failsUntil: 0 }];
}
