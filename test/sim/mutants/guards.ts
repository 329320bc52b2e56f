import type { PromiseName } from "../oracle.ts";

/** A guard of the product, and how it is switched off. */
export interface Mutant {
  readonly name: string;
  /** What the guard does, for the table. */
  readonly guard: string;
  /** Under shared/. */
  readonly file: string;
  /** What is replaced by what. */
  readonly changes: readonly (readonly [find: string, replace: string])[];
  /** Which promises may break without it. */
  readonly breaks: readonly PromiseName[];
  /** Whether `npm test` checks it too: those that die quickly. */
  readonly isQuick?: boolean;
}

export const mutants: readonly Mutant[] = [
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
    breaks: ["one final state", "no overlap", "nothing repeated", "settled first"],
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
    breaks: ["nothing repeated", "no overlap"],
  },
  {
    name: "journal-chain",
    guard: "an append that finds another head is a stale holder's",
    file: "journal/journal.ts",
    changes: [
      [
        "if (found?.revision !== seen) throw stale(head);",
        "if (found?.revision !== seen) seen = found?.revision;",
      ],
    ],
    breaks: ["nothing repeated", "no overlap"],
  },
  {
    name: "beat-document",
    guard: "a heartbeat asks whether the document still has the claim",
    file: "runner/lease.ts",
    changes: [["if (claim && !stopped.signal.aborted) {", "if (claim && deps === undefined) {"]],
    breaks: ["no overlap", "nothing repeated", "everything ends"],
  },
  {
    name: "beat-attested",
    guard: "where reads may be stale, a heartbeat ends with a write that most copies take",
    file: "runner/lease.ts",
    changes: [["if (deps.store.attest) {", "if (deps === undefined) {"]],
    breaks: ["no overlap"],
  },
  {
    name: "beat-sent-at",
    guard: "a heartbeat extends the lease from when it was sent, not from its answer",
    file: "runner/lease.ts",
    changes: [["provenAt = sentAt;\n      return true;", "provenAt = instant(deps);\n      return true;"]],
    breaks: ["no overlap"],
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
    breaks: ["no overlap"],
    isQuick: true,
  },
  {
    name: "asked-signal",
    guard: "a signal that is asked compares clocks first, in a process that was frozen",
    file: "runner/run.ts",
    changes: [
      ["const signal = watchful(abort.signal, lease);", "const signal = abort.signal; void watchful;"],
    ],
    breaks: ["no overlap"],
  },
  {
    name: "monotonic-clock",
    guard: "a lease ends by whichever clock says so first: the wall's, where a machine slept",
    file: "runner/lease.ts",
    changes: [["Math.max(now.wall - provenAt.wall, now.monotonic", "Math.max(0, now.monotonic"]],
    breaks: ["no overlap"],
  },
  {
    name: "takeover-wait",
    guard: "a successor waits until no earlier holder can act",
    file: "runner/claim.ts",
    changes: [["await deps.clock.sleep(ms, AbortSignal.any([lease.lost, stop]));", ""]],
    breaks: ["no overlap"],
    isQuick: true,
  },
  {
    name: "takeover-wait-length",
    guard: "that wait is a whole lease",
    file: "settings/settings.ts",
    changes: [["return lease + Math.max(100, Math.floor(lease / 10));", "return lease / 2;"]],
    breaks: ["no overlap"],
  },
  {
    name: "released",
    guard: "a task counts as let go of only when its handler's code has ended",
    file: "task/endings.ts",
    changes: [["released: isOver ?? false,", "released: true,"]],
    breaks: ["no overlap"],
    isQuick: true,
  },
  {
    name: "abort-at-suspension",
    guard: "what runs beside a wait is told to stop when the task suspends",
    file: "runner/run.ts",
    changes: [
      ['abort.abort(new PawlError("execution_over", `This', 'void (new PawlError("execution_over", `This'],
    ],
    breaks: ["no overlap", "nothing repeated"],
  },
  {
    name: "record-before-ack",
    guard: "how it ended is written before the ack",
    file: "runner/handle.ts",
    changes: [
      [
        "const recorded = await record(holding, ran);",
        "await execution.delivery.ack();\n  const recorded = await record(holding, ran);",
      ],
    ],
    breaks: ["settled first"],
    isQuick: true,
  },
  {
    name: "surplus-settled",
    guard: "a message that has nothing to run is settled before it is acked",
    file: "runner/claim.ts",
    changes: [
      [
        'return written.kind === "written" ? closed(ACK, "surplus", outcome) : undefined;',
        'return closed(ACK, "surplus", outcome);',
      ],
      [
        'const written = await writeIf(decision, () => ({ type: "surplus", queue, seq, dispatch, outcome }));',
        "void dispatch;",
      ],
    ],
    breaks: ["settled first"],
  },
  {
    name: "settled-skipped",
    guard: "a message whose sequence is settled is skipped",
    file: "task/decide.ts",
    changes: [["if (isSettled(task, arrival.queue, arrival.seq)) return", "if (!isSettled) return"]],
    breaks: ["one final state", "everything explained", "no overlap", "everything ends"],
  },
  {
    name: "final-stays",
    guard: "a message that finds its task ended starts nothing",
    file: "task/decide.ts",
    changes: [
      [
        '    case "dispatched":\n',
        '    case "failed":\n    case "waiting":\n      return { kind: "claim", seen: { ...seen, task: task as never } };\n    case "dispatched":\n',
      ],
    ],
    breaks: ["one final state", "no accident", "everything ends"],
  },
  {
    name: "carrier",
    guard: "only the carrier's redelivery is a takeover; another message is one too many",
    file: "task/decide.ts",
    changes: [['if (!isCarrier(task, arrival)) return { kind: "surplus", seen, outcome: "duplicate" };', ""]],
    breaks: ["settled first", "no overlap", "everything explained"],
  },
  {
    name: "state-before-publish",
    guard: "a dispatch is written before its message is published",
    file: "dispatch/submit.ts",
    changes: [
      [
        "const created = await create(deps, task,",
        'if (!isLater) await publish(deps, { task: task as Dispatched, revision: "1" }, queue, msgIdOf(task)).catch(() => {});\n  const created = await create(deps, task,',
      ],
    ],
    breaks: [
      "one final state",
      "everything ends",
      "everything explained",
      "settled first",
      "nothing repeated",
    ],
  },
  {
    name: "effect-intent",
    guard: "an effect's intent is stored before it begins",
    file: "handler/effect.ts",
    changes: [
      ['await journal.append({ kind: "intent", of: "effect", key, at, alone, fence: task.fence });', ""],
      [
        'await journal.append({ kind: "receipt", key, ...kept });',
        'await journal.append({ kind: "intent", of: "effect", key, at, alone, fence: task.fence });\n      await journal.append({ kind: "receipt", key, ...kept });',
      ],
    ],
    breaks: ["nothing repeated"],
    isQuick: true,
  },
  {
    name: "in-doubt",
    guard: "an effect that began and has no receipt is not tried again in silence",
    file: "handler/effect.ts",
    changes: [["if (!told && !honoursKey && !isOver) return", "if (told && !told) return"]],
    breaks: ["nothing repeated"],
    isQuick: true,
  },
  {
    name: "verify-trusted",
    guard: '"not there" proves nothing while a dead holder\'s request may still arrive',
    file: "handler/effect.ts",
    changes: [['const isOver = verify && known.state === "unsure";', "const isOver = verify !== undefined;"]],
    breaks: ["nothing repeated"],
  },
  {
    name: "effect-fence",
    guard: "an effect whose signal aborted after its intent does not begin",
    file: "handler/effect.ts",
    changes: [
      [
        "if (signal.aborted) {\n        await ended",
        "if (signal.aborted && told(signal)) {\n        await ended",
      ],
      [
        "/** The same on every try and every runner.",
        "function told(_: unknown): boolean {\n  return false;\n}\n\n/** The same on every try and every runner.",
      ],
    ],
    breaks: ["no overlap", "nothing repeated"],
  },
  {
    name: "budget-reserved",
    guard: "the most that a turn can cost is set aside before it is asked",
    file: "handler/model-turn.ts",
    changes: [["book.reserve(most);", ""]],
    breaks: ["within budget"],
  },
  {
    name: "budget-lost-turns",
    guard: "a turn whose answer was lost stays charged",
    file: "journal/budget.ts",
    changes: [["return plus(paid(entries), lost(entries));", "return paid(entries);"]],
    breaks: ["within budget"],
  },
  {
    name: "turn-stored",
    guard: "a turn that the journal has is not asked again",
    file: "handler/model-turn.ts",
    changes: [
      ['if (known?.state === "done") return (await journal.read(known.kept)) as unknown as Turn;', ""],
    ],
    breaks: ["nothing repeated"],
    isQuick: true,
  },
  {
    name: "step-stored",
    guard: "a step that the journal has is not run again",
    file: "handler/step.ts",
    changes: [["if (known) return journal.read(known.kept);", ""]],
    breaks: ["nothing repeated"],
    isQuick: true,
  },
  {
    name: "is-new",
    guard: "a journal counts as new only by its holder's own word, never by a count of 0",
    file: "task/transitions.ts",
    changes: [
      [
        'const isKnown = base.fence === 0 || (event.type === "claim" && base.released && isNone);',
        "const isKnown = base.journaled === 0 || isNone;",
      ],
    ],
    breaks: ["nothing repeated"],
  },
  {
    name: "cancel-by-journal",
    guard: "a holder that is asked to cancel decides on the journal whether an effect is open",
    file: "runner/run.ts",
    changes: [
      [
        'return doubt ? { kind: "doubt", ...doubt, ended } : { kind: "cancelled", ended };',
        'return { kind: "cancelled", ended };',
      ],
    ],
    breaks: ["nothing repeated"],
  },
  {
    name: "operator-reads-journal",
    guard: "an operator's cancel reads the journal before it writes",
    file: "dispatch/operate.ts",
    changes: [
      [
        "const isOpen = journal !== undefined && doubtful(journal.entries, () => false) !== undefined;",
        "const isOpen = doubtful === undefined;",
      ],
    ],
    breaks: ["nothing repeated"],
  },
  {
    name: "waits-carried",
    guard: "how long a successor has waited is kept when it hands over",
    file: "task/endings.ts",
    changes: [["lease: Math.max(0, task.lease - waited)", "lease: Math.max(0, task.lease - 0 * waited)"]],
    breaks: ["everything ends"],
  },
  {
    name: "fruitless-hand-offs",
    guard: "an attempt that gets no further in any invocation has failed",
    file: "runner/invocation.ts",
    changes: [["if (asks && needs >= asks)", "if (asks && needs > asks)"]],
    breaks: ["everything ends"],
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
    breaks: ["everything ends"],
  },
  {
    name: "attempt-timeout",
    guard: "a handler that never ends is stopped",
    file: "runner/run.ts",
    changes: [["if (!over.aborted) timedOut.abort(", "if (over === undefined) timedOut.abort("]],
    breaks: ["everything ends"],
  },
  {
    name: "crash-loop",
    guard: "a task that kills its process each time becomes a dead letter",
    file: "task/decide.ts",
    changes: [["task.silentStarts >= limits.crashLimit &&", "task.silentStarts >= 1e9 &&"]],
    breaks: ["everything ends"],
  },
  {
    name: "left-lanes",
    guard: "what lanes that went have left is drained",
    file: "dispatch/left-queues.ts",
    changes: [["return left.map(({ queue }) => queue);", "return [];"]],
    breaks: ["everything ends"],
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
    breaks: ["everything ends"],
    isQuick: true,
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
    breaks: ["everything ends"],
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
    breaks: ["everything ends"],
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
    breaks: ["everything ends"],
  },
  {
    name: "lost-named",
    guard: "a report names a message that vanished",
    file: "reconcile/look/examine.ts",
    changes: [['find("message_lost", ', 'if (seq === undefined) find("message_lost", ']],
    breaks: ["everything explained"],
  },
];

export function mutantNamed(name: string): Mutant {
  const found = mutants.find((one) => one.name === name);
  if (!found) throw new Error(`There is no mutant ${JSON.stringify(name)}`);
  return found;
}
