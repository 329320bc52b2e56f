import type { Mishap } from "../world/process.ts";
import { type Random, random } from "../world/random.ts";
import { makeFaults, makeServerFaults } from "./faults.ts";
import { makeProgram, type Program } from "./program.ts";
import { type Theme, themeOf } from "./theme.ts";

export interface AgentPlan {
  readonly program: Program;
  readonly attempts: number;
  readonly lanes: number;
  /** How many it has when the newest version is everywhere. */
  readonly lanesLater?: number;
  readonly order: "loose" | "strict";
  readonly budgetUsd?: number;
  /** In milliseconds. */
  readonly timeout: number;
}

/** Somebody who runs tasks: a process that stays, or a function that is woken every minute and has an end. */
export interface RunnerPlan {
  readonly name: string;
  readonly version: number;
  /** How far its clock is off. */
  readonly skew: number;
  /** Until it is there, and until it is back after it died. */
  readonly after: number;
  /** The time limit of an invocation; none for a process that stays. */
  readonly limit?: number;
}

/** What somebody outside does. */
export type Operation = { readonly at: number; readonly task: string } & (
  | { readonly do: "submit"; readonly in?: number; readonly msgId?: string }
  | { readonly do: "publish" }
  | { readonly do: "cancel" | "redrive" | "redrive from scratch" }
  | { readonly do: "redrive from"; readonly place: number }
  | { readonly do: "approve" | "reject" | "send"; readonly name: string }
  | { readonly do: "resolve" | "reconcile" }
);

/** How the next task that fails is redriven: so long after, as it is, or from one of its journal's entries. */
export type RedrivePlan = { readonly after: number } & (
  | { readonly do: "redrive" }
  | { readonly do: "redrive from"; readonly place: number }
);

/** What goes wrong with a process as it sends a request. */
export interface ProcessFault {
  /** Its name; or "any runner". */
  readonly process: string;
  /** How the request begins: "replace t1", "+ACK"; or nothing, for any. */
  readonly what: string;
  /** After so many others of the kind. */
  readonly after: number;
  readonly mishap: Mishap;
}

/** What goes wrong with a server. */
export type ServerFault = { readonly at: number } & (
  | { readonly kind: "the broker is killed"; readonly ms: number; readonly forgets: number }
  | { readonly kind: "the store is away"; readonly ms: number }
  | { readonly kind: "the consumer is changed"; readonly ackWait?: number; readonly maxDeliver?: number }
  | { readonly kind: "a message vanishes" }
  | { readonly kind: "a message is published by hand"; readonly task: string }
);

/** All that one simulation is: what follows from its seed. Anything can be left out of its lists, and it is still one. */
export interface Plan {
  readonly seed: number;
  readonly ackWait: number;
  /** The store has several copies, and reads that may be stale. */
  readonly isReplicated: boolean;
  readonly agents: { readonly main: AgentPlan; readonly child: AgentPlan };
  readonly runners: readonly RunnerPlan[];
  readonly operations: readonly Operation[];
  readonly redrives?: readonly RedrivePlan[];
  readonly faults: readonly ProcessFault[];
  readonly serverFaults: readonly ServerFault[];
  /** The share of requests, and of answers, that are lost while faults last. */
  readonly losses: number;
  /** When faults stop. */
  readonly calmAt: number;
  /** At the end it is reconciled, twice. */
  readonly isReconciled: boolean;
  /** As a function does it, in slices of so many calls of the store. */
  readonly sliceCalls?: number;
  /** How often a message is delivered at most, where that is not what it is by default. */
  readonly maxDeliver?: number;
  /** All has to end so soon after faults stop. */
  readonly patience?: number;
  /** Nothing in it is a reason to fail: every task has to complete. */
  readonly isHarmless?: boolean;
}

const SECOND = 1_000;

export function planOf(seed: number): Plan {
  const chance = random(seed, "plan");
  const theme = themeOf(chance);
  const isSlow = (theme === "takeover" || theme === "late" || theme === "copies") && chance.chance(0.8);
  const isReplicated = theme === "copies";
  const pace = theme === "stop" ? "deaf" : theme === "money" ? "paid" : isSlow ? "slow" : "any";
  // Where code does not listen, attempts are over while it still runs.
  const timeouts = { deaf: [3, 8, 15], slow: [240], paid: [120], any: [40, 120] };
  const budget = pace === "paid" && { budgetUsd: chance.pick([0.004, 0.006, 0.008]) };
  const main = { ...agentPlan(chance, makeProgram(chance, pace), timeouts[pace]), ...budget };
  const child = agentPlan(chance, makeProgram(chance, "any", true), timeouts.any);
  const count = theme === "anything" && chance.chance(0.4) ? 2 + chance.int(2) : 1;
  const tasks = Array.from({ length: count }, (_, i) => `t${i + 1}`);
  const operations = makeOperations(chance, tasks, main.program);
  return {
    seed,
    ackWait: 30 * SECOND,
    isReplicated,
    agents: { main, child },
    runners: makeRunners(chance, theme),
    operations,
    redrives: makeRedrives(random(seed, "redrives")),
    faults: makeFaults(chance, theme),
    serverFaults: makeServerFaults(chance, tasks, theme),
    losses: theme === "anything" ? chance.pick([0, 0, 0, 0.02, 0.1]) : 0,
    calmAt: chance.pick([45, 60, 120]) * SECOND,
    isReconciled: operations.some((one) => one.do === "reconcile") || chance.chance(0.1),
    ...(chance.chance(0.3) && { sliceCalls: chance.pick([3, 10, 30]) }),
  };
}

function agentPlan(chance: Random, program: Program, timeouts: readonly number[]): AgentPlan {
  return {
    program,
    attempts: 1 + chance.int(3),
    ...chance.pick([
      { lanes: 1 },
      { lanes: 1 },
      { lanes: 1 },
      { lanes: 1 },
      { lanes: 2 },
      { lanes: 2, lanesLater: 1 },
    ]),
    order: chance.chance(0.15) ? "strict" : "loose",
    ...(chance.chance(0.5) && { budgetUsd: chance.pick([0.004, 0.008, 0.015, 0.05]) }),
    timeout: chance.pick(timeouts) * SECOND,
  };
}

function makeRunners(chance: Random, theme: Theme): RunnerPlan[] {
  const few = theme === "invocations" ? 1 : 2;
  return Array.from({ length: theme === "anything" ? 1 + chance.int(3) : few }, (_, i) => ({
    name: `r${i + 1}`,
    version: chance.chance(0.1) ? 2 : 1,
    skew: chance.chance(0.3) ? Math.round(chance.between(-1_200, 1_200)) : 0,
    after: chance.pick([1, 10, 500, 8_000]),
    ...(chance.chance(theme === "invocations" ? 1 : 0.05) && {
      limit: chance.pick([30, 40, 60, 300]) * SECOND,
    }),
  }));
}

function makeOperations(chance: Random, tasks: readonly string[], program: Program): Operation[] {
  const moment = () =>
    Math.round(
      chance.pick([
        chance.between(0, 3),
        chance.between(0, 12),
        chance.between(0, 30),
        chance.between(0, 90),
      ]) * SECOND,
    );
  const operations: Operation[] = tasks.map((task) => {
    const at = Math.round(chance.between(0, 5) * SECOND);
    if (chance.chance(0.08)) return { at, task, do: "publish" };
    return { at, task, do: "submit", ...(chance.chance(0.08) && { in: chance.pick([10, 8_000, 70_000]) }) };
  });
  const names = namesIn(program);
  for (let i = chance.pick([0, 0, 0, 1, 1, 2, 4]); i > 0; i--) {
    const task = chance.pick(tasks);
    const at = moment();
    const answerable = names.length > 0 && chance.chance(0.6);
    if (answerable) {
      const { name, isApproval } = chance.pick(names);
      operations.push({
        at,
        task,
        do: isApproval ? chance.pick(["approve", "approve", "reject"] as const) : "send",
        name,
      });
    } else {
      const what = chance.pick([
        "cancel",
        "cancel",
        "cancel",
        "redrive",
        "redrive from scratch",
        "submit",
        "resolve",
        "reconcile",
      ] as const);
      operations.push({ at, task, do: what });
      // Two reconciliations at once.
      if (what === "reconcile" && chance.chance(0.5))
        operations.push({ at: at + chance.int(400), task, do: what });
    }
  }
  return operations;
}

function makeRedrives(chance: Random): RedrivePlan[] {
  return Array.from({ length: chance.pick([0, 0, 1, 1, 2, 3]) }, () => {
    const after = Math.round(chance.pick([10, 3_000, 20_000]) * chance.between(0.5, 1.5));
    return chance.chance(0.5)
      ? { after, do: "redrive" }
      : { after, do: "redrive from", place: chance.between(0, 1) };
  });
}

/** What a program waits for by name. */
export function namesIn(program: Program): { name: string; isApproval: boolean }[] {
  return program.flatMap((action) => {
    switch (action.do) {
      case "approval":
        return [{ name: action.name, isApproval: true }];
      case "event":
        return [{ name: action.name, isApproval: false }];
      case "loop":
      case "nested":
        return namesIn(action.body);
      case "parallel":
        return action.branches.flatMap(namesIn);
      case "version":
        return [...namesIn(action.before), ...namesIn(action.from2)];
      default:
        return [];
    }
  });
}
