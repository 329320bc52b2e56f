import type { PromiseName } from "../../infra/drills/facts.ts";

/** A drill, the guard that it stands on, and the promise that is broken without it. */
export interface Guarded {
  readonly drill: string;
  /** Its name among the simulator's mutants. */
  readonly mutant: string;
  readonly breaks: PromiseName;
  /** How long an election takes is the servers' own: it may take several tries to have it overlap. */
  readonly tries?: number;
  /** Whether `npm test` checks it too. */
  readonly isQuick?: boolean;
}

export const guarded: readonly Guarded[] = [
  { drill: "crash-before-ack", mutant: "record-before-ack", breaks: "never repeated", isQuick: true },
  { drill: "crash-in-the-middle", mutant: "step-stored", breaks: "never repeated" },
  { drill: "crash-between-effect-and-receipt", mutant: "in-doubt", breaks: "never repeated" },
  { drill: "crash-loop", mutant: "crash-loop", breaks: "nothing lost" },
  { drill: "frozen-runner", mutant: "self-abort", breaks: "no overlap" },
  { drill: "machine-sleeps", mutant: "monotonic-clock", breaks: "no overlap" },
  { drill: "zombie-ack", mutant: "stale-silent", breaks: "no overlap" },
  { drill: "zombie-heartbeat", mutant: "self-abort", breaks: "no overlap" },
  { drill: "slow-handler", mutant: "heartbeats", breaks: "nothing lost" },
  { drill: "deploy-in-the-middle", mutant: "released", breaks: "no overlap" },
  { drill: "platform-time-limit", mutant: "step-stored", breaks: "never repeated" },
  { drill: "store-away-before-claim", mutant: "put-back", breaks: "nothing lost" },
  { drill: "store-away-in-the-middle", mutant: "beat-document", breaks: "no overlap" },
  { drill: "store-away-at-completion", mutant: "record-before-ack", breaks: "nothing lost" },
  { drill: "runner-without-its-store", mutant: "store-away", breaks: "nothing lost" },
  { drill: "store-full", mutant: "record-before-ack", breaks: "nothing lost" },
  { drill: "broker-restart", mutant: "turn-stored", breaks: "never repeated" },
  { drill: "broker-leader-killed", mutant: "turn-stored", breaks: "never repeated" },
  { drill: "broker-leader-cut-off", mutant: "beat-attested", breaks: "no overlap", tries: 3 },
  { drill: "publish-timed-out", mutant: "surplus-settled", breaks: "explained" },
  { drill: "rollback-failed", mutant: "orphans", breaks: "nothing lost" },
  { drill: "window-boundary", mutant: "surplus-settled", breaks: "explained" },
  { drill: "poison-message", mutant: "poison-kept", breaks: "explained" },
  { drill: "redrive-inside-the-window", mutant: "redrive-keeps-effects", breaks: "never repeated" },
  { drill: "budget-spent-in-a-crash", mutant: "budget-lost-turns", breaks: "never repeated" },
  { drill: "approval-delivered-twice", mutant: "answered-meanwhile", breaks: "nothing lost" },
  { drill: "cancel-during-takeover", mutant: "cancel-by-journal", breaks: "never repeated" },
];
