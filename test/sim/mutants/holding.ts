import type { Mutant } from "./guards.ts";

/** Who may act on a task: claims, leases, the wait of a successor. */
export const holding: readonly Mutant[] = [
  {
    name: "compare-and-set",
    guard: "a document is written only on the revision that its writer saw",
    file: "retry/guarded-write.ts",
    changes: [
      [
        "const result = await deps.store.replace(next, seen);",
        "const result = await deps.store.replace(next, (await deps.store.get(task.id))?.revision ?? seen);",
      ],
    ],
    isQuick: true,
  },
  {
    name: "journal-fence",
    guard: "a holder writes its fence to the journal before it reads it",
    file: "journal/journal.ts",
    changes: [
      [
        "    checkWhole(task, found?.head);\n",
        "    checkWhole(task, found?.head);\n    if (found) return found;\n",
      ],
    ],
  },
  {
    name: "beat-document",
    guard: "a heartbeat asks whether the document still has the claim",
    file: "runner/lease.ts",
    changes: [["if (claim && !stopped.signal.aborted) {", "if (claim && deps === undefined) {"]],
  },
  {
    name: "beat-attested",
    guard: "where reads may be stale, a heartbeat ends with a write that most copies take",
    file: "runner/lease.ts",
    changes: [["if (deps.store.attest) {", "if (deps === undefined) {"]],
  },
  {
    name: "self-abort",
    guard: "a holder without a whole heartbeat stops by itself",
    file: "runner/lease.ts",
    changes: [
      [
        "return leaseTime - Math.max(now.wall - provenAt.wall, now.monotonic - provenAt.monotonic);",
        "return now ? leaseTime : 0;",
      ],
    ],
  },
  {
    name: "asked-signal",
    guard: "a signal that is asked compares clocks first, in a process that was frozen",
    file: "runner/run.ts",
    changes: [
      ["const signal = watchful(abort.signal, lease);", "const signal = abort.signal; void watchful;"],
    ],
  },
  {
    name: "monotonic-clock",
    guard: "a lease ends by whichever clock says so first: the wall's, where a machine slept",
    file: "runner/lease.ts",
    changes: [["Math.max(now.wall - provenAt.wall, now.monotonic", "Math.max(0, now.monotonic"]],
  },
  {
    name: "takeover-wait",
    guard: "a successor waits until no earlier holder can act",
    file: "runner/claim.ts",
    changes: [["await deps.clock.sleep(ms, AbortSignal.any([lease.lost, stop]));", ""]],
  },
  {
    name: "takeover-wait-length",
    guard: "that wait is a whole lease",
    file: "settings/settings.ts",
    changes: [["return lease + Math.max(100, Math.floor(lease / 10));", "return lease / 2;"]],
  },
  {
    name: "released",
    guard: "a task counts as let go of only when its handler's code has ended",
    file: "task/endings.ts",
    changes: [["released: isOver ?? false,", "released: true,"]],
  },
  {
    name: "abort-at-suspension",
    guard: "what runs beside a wait is told to stop when the task suspends",
    file: "runner/run.ts",
    changes: [["abort.abort(EXECUTION_OVER)", "void EXECUTION_OVER"]],
  },
  {
    name: "stale-silent",
    guard: "who has lost its lease says nothing to the broker",
    file: "runner/handle.ts",
    changes: [
      [
        'return { word: { kind: "silent" }, as: "abandoned", detail: "lease lost" };',
        'return { word: { kind: "ack" }, as: "abandoned", detail: "lease lost" };',
      ],
    ],
  },
  {
    name: "put-back",
    guard: "a message whose task can't be claimed is put back, not acked",
    file: "runner/handle.ts",
    changes: [
      [
        'return { word: { kind: "nak", delayMs: LET_GO }, as: "store-away", detail: error.message };',
        'return { word: { kind: "ack" }, as: "store-away", detail: error.message };',
      ],
    ],
  },
  {
    name: "heartbeats",
    guard: "a message in hand is held by heartbeats",
    file: "runner/lease.ts",
    changes: [["  void beats();\n", ""]],
  },
  {
    name: "poison-kept",
    guard: "what can't be read as a task is kept as a dead letter before it is acked",
    file: "runner/handle.ts",
    changes: [
      ["  const id = await keepPoison(\n", "  const id = idOf(execution);\n  void (() => keepPoison(\n"],
      ["    problem,\n  );\n", "    problem,\n  ));\n"],
    ],
  },
];
