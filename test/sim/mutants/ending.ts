import type { Mutant } from "./guards.ts";

/** That everything ends, and is explained. */
export const ending: readonly Mutant[] = [
  {
    name: "waits-carried",
    guard: "how long a successor has waited is kept when it hands over",
    file: "task/endings.ts",
    changes: [["lease: Math.max(0, task.lease - waited)", "lease: Math.max(0, task.lease - 0 * waited)"]],
  },
  {
    name: "fruitless-hand-offs",
    guard: "an attempt that gets no further in any invocation has failed",
    file: "runner/invocation.ts",
    changes: [["if (asks && needs >= asks)", "if (asks && needs > asks)"]],
  },
  {
    name: "store-away",
    guard: "a runner that can't reach its store lets go of the message",
    file: "retry/guards.ts",
    changes: [
      [
        "if (deps.clock.monotonic() - since >= leaseTime) throw",
        "if (deps.clock.monotonic() - since >= 1e12) throw",
      ],
    ],
  },
  {
    name: "attempt-timeout",
    guard: "a handler that never ends is stopped",
    file: "runner/run.ts",
    changes: [["if (!over.aborted) timedOut.abort(", "if (over === undefined) timedOut.abort("]],
  },
  {
    name: "crash-loop",
    guard: "a task that kills its process each time becomes a dead letter",
    file: "task/decide.ts",
    changes: [["task.silentStarts >= limits.crashLimit &&", "task.silentStarts >= 1e9 &&"]],
  },
  {
    name: "left-lanes",
    guard: "what lanes that went have left is drained",
    file: "dispatch/left-queues.ts",
    changes: [["return left.map(({ queue }) => queue);", "return [];"]],
  },
  {
    name: "orphans",
    guard: "a task whose message is lost gets another",
    file: "dispatch/sweep.ts",
    changes: [
      [
        '  const { task, revision } = stored;\n  if (task.state !== "dispatched" && task.state !== "running") return false;',
        '  const { task, revision } = stored;\n  if (task.state !== null) return false;\n  if (task.state !== "dispatched" && task.state !== "running") return false;',
      ],
    ],
  },
  {
    name: "deadlines",
    guard: "a wait whose deadline has passed goes on",
    file: "dispatch/sweep.ts",
    changes: [
      [
        'const isDue = (task: Task) => task.state === "waiting" && (task.dueAt ?? Infinity) <= deps.clock.now();',
        'const isDue = (task: Task) => task.state === "waiting" && (task.dueAt ?? Infinity) <= 0 * deps.clock.now();',
      ],
    ],
  },
  {
    name: "answered-meanwhile",
    guard: "an answer that came while a task made ready to wait is not missed",
    file: "runner/record.ts",
    changes: [
      [
        "if (isAnswered(task, outcome)) ending",
        "if (isAnswered(task, outcome) && deps === undefined) ending",
      ],
    ],
  },
  {
    name: "given-up",
    guard: "a message that the server has given up on becomes a dead letter",
    file: "dispatch/advisories.ts",
    changes: [
      [
        "for (const advisory of await deps.bus.advisories(MOST)) {",
        "for (const advisory of (await deps.bus.advisories(MOST)).slice(0, 0)) {",
      ],
    ],
  },
  {
    name: "lost-named",
    guard: "a report names a message that vanished",
    file: "reconcile/look/examine.ts",
    changes: [['find("message_lost", ', 'if (seq === undefined) find("message_lost", ']],
  },
];
