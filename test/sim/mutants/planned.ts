import { quiet } from "../plan/quiet.ts";
import type { Mutant } from "./guards.ts";

const DAY = 86_400_000;
const one = { name: "r1", version: 1, skew: 0, after: 1 } as const;
const two = { ...one, name: "r2" } as const;
/** A function, which is woken every minute. */
const woken = { ...one, limit: 40_000 } as const;

/** Guards that seeds miss seldom or never: for each a plan that breaks a promise without it, and none with it. */
export const planned: readonly Mutant[] = [
  {
    name: "successor-attests",
    guard: "where reads may be stale, a successor attests its claim before it waits",
    file: "runner/claim.ts",
    changes: [
      [
        "const mustAttest = !held.task.started && deps.store.attest !== undefined;",
        "const mustAttest = held.task.started && !held.task.started;",
      ],
    ],
    // A deposed leader keeps the holder's side for 8 s. The holder's first heartbeat reads there, but its attestation comes
    // through when that is over. Then the holder is cut off.
    plan: quiet(
      [
        {
          do: "parallel",
          how: "all",
          branches: [
            [{ do: "step", name: "s", ms: 0, failsUntil: 0 }],
            [{ do: "work", name: "w", ms: 25_500 }],
          ],
        },
      ],
      {
        isReplicated: true,
        runners: [one, { ...two, after: 300 }],
        faults: [
          { process: "r1", what: "put journal", after: 0, mishap: { kind: "deposed", ms: 8_000 } },
          { process: "r1", what: "Attesting", after: 0, mishap: { kind: "late", ms: 700 } },
          {
            process: "r1",
            what: "+WPI",
            after: 1,
            mishap: { kind: "cut", from: "both", ms: 60_000, loses: "requests" },
          },
        ],
        serverFaults: [{ at: 500, kind: "the consumer is changed", ackWait: 1_000 }],
        calmAt: 120_000,
      },
    ),
  },
  {
    name: "lingering-waited-out",
    guard: "where code may linger beside a wait, the next holder waits that out",
    file: "runner/record.ts",
    changes: [["return lingers ? { lingers:", "return lingers && !settings ? { lingers:"]],
    // Told to stop as the task suspends, the other branch goes on for three seconds; the answer comes sooner.
    plan: quiet(
      [
        {
          do: "parallel",
          how: "all",
          branches: [
            [{ do: "approval", name: "a", catches: false }],
            [{ do: "ignore", name: "i", ms: 3_000 }],
          ],
        },
      ],
      {
        operations: [
          { at: 10, task: "t1", do: "submit" },
          { at: 1_000, task: "t1", do: "approve", name: "a" },
        ],
      },
    ),
  },
  {
    name: "operator-reads-again",
    guard: "an operator's cancel reads the journal again where the document has changed since",
    file: "dispatch/operate.ts",
    changes: [["if (!mayAct && readFor !== task.stamp) {", "if (!mayAct && readFor === undefined) {"]],
    // While the cancel is on its way, a holder tries the effect, and fails.
    plan: quiet(
      [{ do: "effect", name: "e", ms: 0, verify: false, honoursKey: true, throws: "after it happened" }],
      {
        runners: [{ ...one, after: 2_050 }],
        operations: [
          { at: 10, task: "t1", do: "submit" },
          { at: 2_000, task: "t1", do: "cancel" },
        ],
        faults: [{ process: "operator", what: "replace t1", after: 0, mishap: { kind: "late", ms: 500 } }],
      },
    ),
  },
  {
    name: "branches-end",
    guard: "what runs beside a branch that failed is told to stop, and not waited for without end",
    file: "runner/run.ts",
    changes: [
      [
        "if (!rest || (await within(deps, rest, over.signal))) return end;",
        "await rest;\n      if (within) return end;",
      ],
    ],
    plan: quiet(
      [
        {
          do: "parallel",
          how: "all",
          branches: [
            [{ do: "nested", name: "n", body: [{ do: "hang", heeds: true, untilAttempt: 1 }] }],
            [{ do: "throw", untilAttempt: 1, fatal: false }],
          ],
        },
      ],
      { isHarmless: true },
      { timeout: DAY },
    ),
  },
  {
    name: "wait-inside",
    guard: "a wait inside a step is refused, also after something else that the step has awaited",
    file: "handler/awaits.ts",
    changes: [["return insideCalls.getStore() !== undefined;", "return insideCalls === undefined;"]],
    plan: quiet(
      [
        {
          do: "nested",
          name: "n",
          body: [
            { do: "work", name: "w", ms: 500 },
            { do: "approval", name: "a", catches: false },
          ],
        },
      ],
      {},
      { timeout: DAY },
    ),
  },
  {
    name: "time-for-a-turn",
    guard: "no turn is begun in an invocation that can't finish it",
    file: "runner/invocation.ts",
    changes: [["return invocation.left() < needs ?", "return invocation.left() < 0 * needs ?"]],
    // The turn takes longer than is left after the step, and the budget is not enough for two.
    plan: quiet(
      [
        { do: "step", name: "s", ms: 15_000, failsUntil: 0 },
        { do: "llm", name: "ask", turns: 1, tools: "none" },
      ],
      { runners: [woken], isHarmless: true },
      { budgetUsd: 0.006 },
    ),
  },
  {
    name: "time-for-what-it-needs",
    guard: "an invocation does not claim what it has too little time for",
    file: "runner/invocation.ts",
    changes: [["if (left >= needed) return undefined;", "if (left >= 0 * needed) return undefined;"]],
    // What was handed off before the turn comes back at once.
    plan: quiet(
      [
        { do: "step", name: "s", ms: 15_000, failsUntil: 0 },
        { do: "llm", name: "ask", turns: 1, tools: "none" },
      ],
      { runners: [woken], isHarmless: true },
      { attempts: 1 },
    ),
  },
  {
    name: "renewed-in-time",
    guard: "a task whose message was delivered very often gets another message",
    file: "runner/invocation.ts",
    changes: [
      [
        "delivery.deliveries > settings.maxDeliver / 2 &&",
        "delivery.deliveries > settings.maxDeliver * 2 &&",
      ],
    ],
    // Each step takes most of an invocation.
    plan: quiet([{ do: "loop", times: 15, body: [{ do: "step", name: "s", ms: 15_000, failsUntil: 0 }] }], {
      runners: [woken],
      maxDeliver: 10,
      isHarmless: true,
    }),
  },
  {
    name: "strict-lane-freed",
    guard: "the message of a task that was cancelled leaves its strict lane at once",
    file: "dispatch/operate.ts",
    changes: [["await leaveQueue(deps, seen.task, task);", "void leaveQueue;"]],
    // After its seventh failure, while its message waits for half a minute.
    plan: quiet(
      [{ do: "throw", untilAttempt: 8, fatal: false }],
      {
        operations: [
          { at: 10, task: "t1", do: "submit" },
          { at: 55_000, task: "t1", do: "cancel" },
        ],
        calmAt: 56_000,
        patience: 10_000,
      },
      { order: "strict", attempts: 9 },
    ),
  },
  {
    name: "message-rescued",
    guard: "who loses a message looks at once whether its task still has one",
    file: "runner/serve.ts",
    changes: [['if (as === "abandoned" || as === "surplus") {', "if (as === undefined) {"]],
    plan: quiet([{ do: "work", name: "w", ms: 26_000 }], {
      runners: [one, { ...two, after: 2 }],
      serverFaults: [
        { at: 2_000, kind: "a message vanishes" },
        { at: 3_000, kind: "a message is published by hand", task: "t1" },
      ],
      patience: 48_000,
    }),
  },
  {
    name: "emptied-lane",
    guard: "a lane that has run empty is looked after at once",
    file: "runner/serve.ts",
    changes: [["expect(last + SWEEP_APART);", ""]],
    plan: quiet([{ do: "step", name: "s", ms: 20, failsUntil: 0 }], {
      runners: [{ ...one, after: 10_000 }],
      serverFaults: [{ at: 5_000, kind: "a message vanishes" }],
      patience: 40_000,
    }),
  },
  {
    name: "lanes-await-each-other",
    guard: "a lane that fails in a function waits for the others before it ends the invocation",
    file: "runner/serve.ts",
    changes: [
      [
        'const ended = mode === "once" ? [] : await Promise.allSettled(all.map(lane));',
        'const ended = mode === "once" ? [] : await Promise.allSettled([await Promise.all(all.map(lane))]);',
      ],
    ],
    // One lane's pull is refused in each invocation, while the other lane has a task to run.
    plan: quiet(
      [{ do: "work", name: "w", ms: 20_000 }],
      {
        runners: [{ ...woken, after: 100, limit: 300_000 }],
        operations: ["t1", "t2"].map((task) => ({ at: 10_000, task, do: "submit" })),
        faults: Array.from({ length: 24 }, (_, i) => ({
          process: "r1",
          what: "pull",
          after: 2 * i,
          mishap: { kind: "refused" },
        })),
        maxDeliver: 10,
        calmAt: 1_800_000,
        isHarmless: true,
      },
      { lanes: 2 },
    ),
  },
  {
    name: "own-msg-id-noted",
    guard: "a message under its submitter's own Msg-Id is known by its sequence to have been published",
    file: "dispatch/publish.ts",
    changes: [['apply(task, { type: "published", seq }, own) : undefined', "undefined : undefined"]],
    plan: quiet([{ do: "step", name: "s", ms: 20, failsUntil: 0 }], {
      runners: [{ ...one, after: 10_000 }],
      operations: [{ at: 10, task: "t1", do: "submit", msgId: "order-1" }],
      serverFaults: [{ at: 5_000, kind: "a message vanishes" }],
      isHarmless: true,
    }),
  },
];
