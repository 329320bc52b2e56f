import type { Mutant } from "./guards.ts";

/** What is done once: records before acks, journals, effects, budgets, cancels. */
export const doing: readonly Mutant[] = [
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
  },
  {
    name: "effect-intent",
    guard: "an effect's intent is stored before it begins",
    file: "handler/effect.ts",
    changes: [
      [
        'await journal.append({ kind: "intent", of: "effect", key, at, alone, fence: task.fence, ...given });',
        "",
      ],
      [
        'await journal.append({ kind: "receipt", key, ...kept });',
        'await journal.append({ kind: "intent", of: "effect", key, at, alone, fence: task.fence });\n      await journal.append({ kind: "receipt", key, ...kept });',
      ],
    ],
    isQuick: true,
  },
  {
    name: "in-doubt",
    guard: "an effect that began and has no receipt is not tried again in silence",
    file: "handler/effect.ts",
    changes: [["if (!told && !honoursKey && !isOver) return", "if (told && !told) return"]],
    isQuick: true,
  },
  {
    name: "verify-trusted",
    guard: '"not there" proves nothing while a dead holder\'s request may still arrive',
    file: "handler/effect.ts",
    changes: [['const isOver = verify && known.state === "unsure";', "const isOver = verify !== undefined;"]],
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
  },
  {
    name: "budget-reserved",
    guard: "the most that a turn can cost is set aside before it is asked",
    file: "handler/model-turn.ts",
    changes: [["book.reserve(most, why);", ""]],
  },
  {
    name: "budget-lost-turns",
    guard: "a turn whose answer was lost stays charged",
    file: "journal/budget.ts",
    changes: [["return plus(paid(entries), lost(entries));", "return paid(entries);"]],
  },
  {
    name: "turn-stored",
    guard: "a turn that the journal has is not asked again",
    file: "handler/model-turn.ts",
    changes: [
      [
        'if (known?.state === "done") return { turn: (await journal.read(known.kept)) as unknown as Turn, key };',
        "",
      ],
    ],
  },
  {
    name: "step-stored",
    guard: "a step that the journal has is not run again",
    file: "handler/step.ts",
    changes: [["if (known) return journal.read(known.kept);", ""]],
    isQuick: true,
  },
  {
    name: "redrive-keeps-effects",
    guard: "a redrive from an entry of the journal forgets no effect",
    file: "journal/redriven.ts",
    changes: [['    kind === "effect" ||\n    isChild', "    isChild"]],
    isQuick: true,
  },
  {
    name: "redrive-keeps-turns",
    guard: "nor the turns of a conversation that led to an effect",
    file: "journal/redriven.ts",
    changes: [["since < (lastEffect.get(name) ?? 0)", "since < 0 * (lastEffect.get(name) ?? 0)"]],
  },
  {
    name: "redrive-once",
    guard: "what a redrive forgets is forgotten once, however often its task starts",
    file: "journal/journal.ts",
    changes: [["head.redriven !== redriven.dispatch", "head.redriven !== -redriven.dispatch"]],
  },
  {
    name: "redrive-last-only",
    guard: "a redrive asks again only what the handler had not gone on from",
    file: "handler/heard.ts",
    changes: [["(one) => one.made === made ||", "(one) => one.made <= made ||"]],
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
  },
  {
    name: "is-new-let-go",
    guard: "nor because a holder that never read it has let go of the task",
    file: "task/transitions.ts",
    changes: [
      [
        "const isNone = unjournaled && base.journaled === 0;",
        "const isNone = !unjournaled || base.journaled === 0;",
      ],
    ],
  },
  {
    name: "cancel-by-journal",
    guard: "a holder that is asked to cancel decides on the journal whether an effect is open",
    file: "runner/by-journal.ts",
    changes: [
      [
        'return doubt ? { kind: "doubt", ...doubt, ended } : { kind: "cancelled", ended };',
        'return { kind: "cancelled", ended };',
      ],
    ],
  },
  {
    name: "cancel-after-takeover",
    guard: "and so does a successor that finds the request when it has waited",
    file: "runner/run.ts",
    changes: [
      [
        "return { outcome: cancelled(task, journal, true), journal: reached(journal, task) };",
        'return { outcome: { kind: "cancelled", ended: true }, journal: reached(journal, task) };',
      ],
    ],
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
  },
];
