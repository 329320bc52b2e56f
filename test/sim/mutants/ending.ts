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
  {
    name: "silent-starts-kept",
    guard: "a hand-off that did not begin keeps the count of starts that came to nothing",
    file: "task/endings.ts",
    changes: [
      [
        "const unbegun = { ...common(task), ...needs,",
        "const unbegun = { ...common(task), silentStarts: 0, ...needs,",
      ],
    ],
  },
  {
    name: "drift-corrected",
    guard: "a consumer that was changed under its runner is corrected",
    file: "runner/queue-drift.ts",
    changes: [["void mend(isSaid);", "void mend;"]],
  },
  {
    name: "unbegun-said",
    guard: "a holder that lost its lease before it began an effect says so",
    file: "handler/disowned.ts",
    changes: [['await deps.store.putPart(id, name, "unbegun");', "void name;"]],
  },
  {
    name: "unbegun-patience",
    guard: "and goes on saying so while the store is away",
    file: "retry/policies.ts",
    changes: [["lasts: 3_600_000,", "lasts: 15_000,"]],
  },
  {
    name: "slices-saved",
    guard: "a slice of a reconciliation keeps what it found out",
    file: "reconcile/walk.ts",
    changes: [["if (isToMend || isOver || saving.isDue()) await", "if (isToMend) await"]],
  },
  {
    name: "list-read-last",
    guard: "the list of reports is read after the record that says that there is one",
    file: "reconcile/books/remembered.ts",
    changes: [
      ["const last = await lastReconciled(store);\n", ""],
      [
        "const record = await store.getRecord(LIST);\n",
        "const record = await store.getRecord(LIST);\n  const last = await lastReconciled(store);\n",
      ],
    ],
  },
  {
    name: "queue-not-made",
    guard: "a queue that was never made is not taken for one that went",
    file: "reconcile/look/look.ts",
    changes: [
      [
        "if (ends.has(task.queue) || !hadMessage(task)) return;",
        "void hadMessage;\n    if (ends.has(task.queue)) return;",
      ],
    ],
  },
  {
    name: "left-lanes-now",
    guard: "a lane that went is named only if it still holds messages",
    file: "reconcile/findings/queues.ts",
    changes: [["isElsewhere && info.messages > 0", "!deps && isElsewhere && info.messages > 0"]],
  },
  {
    name: "time-at-arrival",
    guard: "whether an invocation has time for a takeover is judged as the message came",
    file: "runner/claim.ts",
    changes: [
      [
        "const tooLong = before && lackOfTime(deps, before, delivery, timeLeft);",
        "const tooLong = before && lackOfTime(deps, before, delivery, timeLeft && deps.invocation?.left());",
      ],
    ],
  },
];
