import type { FindingKind } from "./kind.ts";

/** What can be found of documents that say what is not so, and of what reconciliation remembers of them. */
export const documentFindingKinds = {
  unreadable: {
    severity: "broken",
    nature: "happened",
    of: "document",
    meaning: "What lies under a task's id, or as its journal, is no document of Pawl's: nobody can read it.",
    did: "Went on with all others. A message that carries the task is kept as a dead letter of its own.",
    todo: "Find out who wrote it. Restore it from a backup, or remove it.",
  },
  altered: {
    severity: "broken",
    nature: "happened",
    of: "document",
    meaning:
      "A document, a journal or a part of one is not as Pawl wrote it: its seal does not fit, it lies under another id than its own, or what queries look for differs from what it says.",
    did: "Took only its settled sequences from it. Nothing is run on its word.",
    todo: "Find out who wrote it. Restore it from a backup; or `pawl accept`, if it is right as it is.",
  },
  rolled_back: {
    severity: "broken",
    nature: "happened",
    of: "task",
    meaning:
      "A task's document was put back to an earlier state, with the seal that it had then: by what an earlier report, its journal or its own sequences show, it was further already.",
    did: "Nothing: it is not dispatched again, because it may be done.",
    todo: "Look at what the task did. If it is done, `pawl cancel` it; if not, submit it again under another id.",
  },
  vanished: {
    severity: "broken",
    nature: "happened",
    of: "task",
    meaning:
      "A task that an earlier report left open, or as a dead letter, is not there any more, and its time to be removed has not come.",
    did: "Asked the store for it once more before it said so.",
    todo: "Find out who removed its document. Restore it from a backup, or submit the work again.",
  },
  made_up: {
    severity: "broken",
    nature: "happened",
    of: "task",
    meaning: "A task is completed without ever having been carried by a message, or without a start.",
    did: "Nothing.",
    todo: "Find out who wrote the document: no runner did.",
  },
  books_altered: {
    severity: "broken",
    nature: "happened",
    of: "record",
    meaning:
      "What reconciliation remembers was changed or removed: the list of reports, a report, or the tasks that the last one left open.",
    did: "Went on from the copy where there is one, and otherwise explained everything anew.",
    todo: "Find out who writes to the store beside Pawl. Compare the reports with those that you were sent.",
  },
  clock_off: {
    severity: "look",
    nature: "standing",
    of: "clock",
    meaning:
      "The clock of the machine that reconciles, or of a server, is more than a minute from the others.",
    did: "Went by the servers' time, and repaired nothing.",
    todo: "Synchronise the clocks, then run `pawl reconcile` again.",
  },
} as const satisfies Record<string, FindingKind>;
