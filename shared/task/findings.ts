import { queueFindingKinds } from "./queue-findings.ts";

/** How bad it is. "broken": a promise did not hold. "look": somebody has to. "note": good to know. */
export type Severity = "broken" | "look" | "note";

export interface FindingKind {
  readonly severity: Severity;
  readonly meaning: string;
  /** What Pawl did about it. */
  readonly did: string;
  /** What is left to a person. */
  readonly todo: string;
}

/** Everything that a reconciliation can find. The report and docs/operator.md are printed from it. */
export const findingKinds = {
  unexplained: {
    severity: "broken",
    meaning:
      "A sequence of a stream that no document settled and that is not in the stream any more: a message was deleted or purged, or its document was removed.",
    did: "Looked through every document again before it said so.",
    todo: "Find out who deleted from the stream or the store. If the work matters, submit it again.",
  },
  message_lost: {
    severity: "broken",
    meaning:
      "A task's message left the stream without being acked: deleted, purged, or lost with its server.",
    did: "Dispatched the task again, and settled the lost sequence in its document.",
    todo: "Find out what removed it.",
  },
  orphan: {
    severity: "look",
    meaning: "A task is dispatched or running, and there is no message that carries it.",
    did: "Dispatched it again; its next holder waits until no earlier one can still act.",
    todo: "Nothing, if it goes on. If there are many, see whether the dispatch function runs every minute.",
  },
  overdue: {
    severity: "look",
    meaning: "A task is scheduled or waiting, and its time is long past.",
    did: "Dispatched it.",
    todo: "See whether the dispatch function runs every minute.",
  },
  unheld: {
    severity: "look",
    meaning: "A task is running, its message is there, and nobody answers for it.",
    did: "Nothing: its message is delivered again when a runner takes it.",
    todo: "See whether the agent's function or runner is up.",
  },
  in_doubt: {
    severity: "look",
    meaning: "An effect began, and nobody knows whether it happened.",
    did: "Nothing: only a person can find out.",
    todo: "Look at the receiver, then `pawl resolve`.",
  },
  completed_twice: {
    severity: "broken",
    meaning: "A task's document records more than one completion.",
    did: "Nothing: what was done can't be undone.",
    todo: "Look at both results. Something wrote to the document past its fence.",
  },
  executed_unfenced: {
    severity: "broken",
    meaning:
      "More starts than claims are recorded, or two holders under one fence: two may have run at once.",
    did: "Nothing: what was done can't be undone.",
    todo: "Look at the task's history for who wrote it.",
  },
  settled_twice: {
    severity: "broken",
    meaning: "Two documents claim the same sequence.",
    did: "Counted it for the first.",
    todo: "See which of them was written by hand, or copied.",
  },
  receipt_without_intent: {
    severity: "broken",
    meaning: "A journal has an effect's receipt without its intent.",
    did: "Nothing.",
    todo: "The journal was changed by hand, or lost entries. Compare it with the receiver.",
  },
  journal_missing: {
    severity: "look",
    meaning:
      "A task's document says that it has a journal, and there is none, or a shorter one, or it can't be read though the store answers.",
    did: "Nothing.",
    todo: "Find out who removed it. If the task is live, its steps are run again.",
  },
  ack_lag: {
    severity: "note",
    meaning: "A message is settled in its document and still in the stream: its ack was lost.",
    did: "Deleted it: what it asked for is done.",
    todo: "Nothing.",
  },
  stranded: {
    severity: "look",
    meaning: "Messages lie in a stream that its consumer will not deliver any more: it gave up on them.",
    did: "Nothing here; the dispatch function makes dead letters of them when the server's advisory was captured.",
    todo: "See whether the dispatch function runs. If it does, the advisory was lost: `nats stream view` shows them.",
  },
  ttl_short: {
    severity: "look",
    meaning: "A finished task's document is removed before the last redelivery of its message could come.",
    did: "Nothing.",
    todo: "Raise PAWL_RETENTION above PAWL_ACK_WAIT × PAWL_MAX_DELIVER.",
  },
  clock_back: {
    severity: "note",
    meaning: "A task's history goes back in time: the clock of one of its writers was set back.",
    did: "Nothing: a lease ends by whichever of two clocks says so first. Only code that went on beside a wait is given too little, or too much, time to end.",
    todo: "Synchronise the clocks of the machines that the history names.",
  },
  stream_rewound: {
    severity: "broken",
    meaning:
      "A stream has fewer sequences than it once had: it was restored from an older state, or made anew under its old name.",
    did: "Explained what is there now, from its first sequence.",
    todo: "Raise PAWL_GENERATION: a stream under its old name honours acks from its former life.",
  },
  consumer_recreated: {
    severity: "note",
    meaning: "A queue's consumer was made anew, and has forgotten what was delivered and acked.",
    did: "Nothing: settled messages that come again are skipped.",
    todo: "Find out who deleted it.",
  },
  old_generation: {
    severity: "note",
    meaning: "A queue of an older generation still has messages.",
    did: "Counted them.",
    todo: "Nothing while its agent's runner or function runs: it drains them. Then delete the stream.",
  },
  ...queueFindingKinds,
} as const satisfies Record<string, FindingKind>;

export type FindingName = keyof typeof findingKinds;

export interface Finding {
  readonly kind: FindingName;
  /** A task's id, a stream's name, or both a stream and its sequences. */
  readonly subject: string;
  readonly agent: string;
  readonly detail: string;
}

/** Of each kind this many are kept by name; the rest are counted. */
export const MOST_NAMED = 100;
const LONGEST_DETAIL = 300;

export interface Findings {
  readonly counts: Readonly<Partial<Record<FindingName, number>>>;
  readonly named: readonly Finding[];
}

export const NO_FINDINGS: Findings = { counts: {}, named: [] };

export function found(findings: Findings, ...more: readonly Finding[]): Findings {
  const counts = { ...findings.counts };
  const named = [...findings.named];
  for (const finding of more) {
    if (named.some((one) => one.kind === finding.kind && one.subject === finding.subject)) continue;
    counts[finding.kind] = (counts[finding.kind] ?? 0) + 1;
    if ((counts[finding.kind] as number) <= MOST_NAMED)
      named.push({ ...finding, detail: finding.detail.slice(0, LONGEST_DETAIL) });
  }
  return { counts, named };
}

const ORDER: readonly Severity[] = ["broken", "look", "note"];

/** The worst first, then by name: the same findings are always the same list. */
export function sorted(named: readonly Finding[]): Finding[] {
  const rank = ({ kind }: Finding) => ORDER.indexOf(findingKinds[kind].severity);
  const text = ({ kind, subject, detail }: Finding) => `${kind} ${subject} ${detail}`;
  return [...named].sort((a, b) => rank(a) - rank(b) || (text(a) < text(b) ? -1 : 1));
}
