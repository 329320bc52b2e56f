import { documentFindingKinds } from "./documents.ts";
import type { FindingKind } from "./kind.ts";
import { queueFindingKinds } from "./queue-findings.ts";

/** Everything that a reconciliation can find. The report and docs/operator.md are printed from it. */
export const findingKinds = {
  unexplained: {
    severity: "broken",
    nature: "happened",
    of: "sequence",
    meaning:
      "A sequence of a stream that no document settled and that is not in the stream any more: a message was deleted or purged, or its document was removed.",
    did: "Looked through every document again before it said so.",
    todo: "Find out who deleted from the stream or the store. If the work matters, submit it again.",
  },
  message_lost: {
    severity: "broken",
    nature: "happened",
    of: "task",
    meaning:
      "A task's message left the stream without being acked: deleted, purged, or lost with its server.",
    did: "Dispatched the task again, and settled the lost sequence in its document.",
    todo: "Find out what removed it.",
  },
  orphan: {
    severity: "look",
    nature: "standing",
    of: "task",
    mendedBy: "dispatch",
    meaning: "A task is dispatched or running, and there is no message that carries it.",
    did: "Dispatched it again; its next holder waits until no earlier one can still act.",
    todo: "See whether the dispatch function runs every minute. Nothing, where it was mended.",
  },
  overdue: {
    severity: "look",
    nature: "standing",
    of: "task",
    mendedBy: "dispatch",
    meaning: "A task is scheduled or waiting, and its time is long past.",
    did: "Dispatched it.",
    todo: "See whether the dispatch function runs every minute. Nothing, where it was mended.",
  },
  unheld: {
    severity: "look",
    nature: "standing",
    of: "task",
    meaning: "A task is running, its message is there, and nobody answers for it.",
    did: "Nothing: its message is delivered again when a runner takes it.",
    todo: "See whether the agent's function or runner is up.",
  },
  in_doubt: {
    severity: "look",
    nature: "standing",
    of: "task",
    meaning: "An effect began, and nobody knows whether it happened.",
    did: "Nothing: only a person can find out.",
    todo: "Look at the receiver, then `pawl resolve`.",
  },
  completed_twice: {
    severity: "broken",
    nature: "happened",
    of: "task",
    meaning: "A task's document records more than one completion.",
    did: "Nothing: what was done can't be undone.",
    todo: "Look at both results. Something wrote to the document past its fence.",
  },
  executed_unfenced: {
    severity: "broken",
    nature: "happened",
    of: "task",
    meaning:
      "More starts than claims are recorded, or two holders under one fence: two may have run at once.",
    did: "Nothing: what was done can't be undone.",
    todo: "Look at the task's history for who wrote it.",
  },
  settled_twice: {
    severity: "broken",
    nature: "happened",
    of: "task",
    meaning: "Two documents claim the same sequence.",
    did: "Counted it for the first.",
    todo: "See which of them was written by hand, or copied.",
  },
  receipt_without_intent: {
    severity: "broken",
    nature: "happened",
    of: "task",
    meaning: "A journal has an effect's receipt without its intent.",
    did: "Nothing.",
    todo: "The journal was changed by hand, or lost entries. Compare it with the receiver.",
  },
  journal_missing: {
    severity: "look",
    nature: "happened",
    of: "task",
    meaning:
      "A task's document says that it has a journal, and there is none, or a shorter one, or it can't be read though the store answers.",
    did: "Nothing.",
    todo: "Find out who removed it. If the task is live, its steps are run again.",
  },
  ack_lag: {
    severity: "note",
    nature: "standing",
    of: "message",
    mendedBy: "ack",
    meaning: "A message is settled in its document and still in the stream: its ack was lost.",
    did: "Deleted it: what it asked for is done.",
    todo: "Nothing.",
  },
  stranded: {
    severity: "look",
    nature: "standing",
    of: "stream",
    meaning: "Messages lie in a stream that its consumer will not deliver any more: it gave up on them.",
    did: "Nothing here; the dispatch function makes dead letters of them when the server's advisory was captured.",
    todo: "See whether the dispatch function runs. If it does, the advisory was lost: `nats stream view` shows them.",
  },
  ttl_short: {
    severity: "look",
    nature: "happened",
    of: "task",
    meaning: "A finished task's document is removed before the last redelivery of its message could come.",
    did: "Nothing.",
    todo: "Raise PAWL_RETENTION above PAWL_ACK_WAIT × PAWL_MAX_DELIVER.",
  },
  clock_back: {
    severity: "note",
    nature: "happened",
    of: "task",
    meaning: "A task's history goes back in time: the clock of one of its writers was set back.",
    did: "Nothing: a lease ends by whichever of two clocks says so first. Only code that went on beside a wait is given too little, or too much, time to end.",
    todo: "Synchronise the clocks of the machines that the history names.",
  },
  stream_rewound: {
    severity: "broken",
    nature: "happened",
    of: "stream",
    meaning:
      "A stream has fewer sequences than it once had, or gave numbers out twice: it was restored from an older state, or made anew under its old name. What was lost under a number that was given out again can't be told.",
    did: "Explained what is there now; of one that was made anew, from its first sequence.",
    todo: "Raise PAWL_GENERATION: a stream under its old name honours acks from its former life.",
  },
  consumer_recreated: {
    severity: "note",
    nature: "happened",
    of: "stream",
    meaning: "A queue's consumer was made anew, and has forgotten what was delivered and acked.",
    did: "Nothing: settled messages that come again are skipped.",
    todo: "Find out who deleted it.",
  },
  old_generation: {
    severity: "note",
    nature: "standing",
    of: "stream",
    meaning: "A queue of an older generation still has messages.",
    did: "Counted them.",
    todo: "Nothing while its agent's runner or function runs: it drains them. Then delete the stream.",
  },
  ...documentFindingKinds,
  ...queueFindingKinds,
} as const satisfies Record<string, FindingKind>;

export type FindingName = keyof typeof findingKinds;

export interface Finding {
  readonly kind: FindingName;
  /** A task's id, a stream's name, or both a stream and its sequences. */
  readonly subject: string;
  readonly agent: string;
  readonly detail: string;
  /** How many of what its kind counts it stands for, where it is not one. */
  readonly amount?: number;
  /** A repair has mended it. */
  readonly mended?: true;
}

export type FindingCounts = Readonly<Partial<Record<FindingName, number>>>;

/** What was found: `shared/reconcile/findings/found.ts` adds to it. */
export interface Findings {
  readonly counts: FindingCounts;
  /** Of each kind the first hundred. */
  readonly named: readonly Finding[];
  /** How many of the counted ones a repair has mended. */
  readonly mended?: FindingCounts;
  /** Of what happened, short hashes of the subjects that are counted and not named: to know them again. */
  readonly unnamed?: Readonly<Partial<Record<FindingName, readonly string[]>>>;
}
