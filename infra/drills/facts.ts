/** What is done to Pawl. */
export type FaultKind =
  | "process killed"
  | "process frozen"
  | "told to stop"
  | "slow work"
  | "store cut off"
  | "store full"
  | "broker killed"
  | "cluster leader killed"
  | "cluster leader cut off"
  | "answers lost"
  | "published by hand"
  | "time limit"
  | "clock moved"
  | "asked twice";

/**
 * What a drill needs beside its runners. "server": a nats-server of its own, because it is killed, filled or restarted;
 * "words": every word to the broker is heard; "settings": those of its own.
 */
export type Need = "server" | "cluster" | "firestore" | "proxy" | "words" | "settings";

/** The five promises of the README, by the words that verdicts name them with. */
export const promises = {
  "one result": "An accepted task ends in exactly one final state, and one result is kept",
  "no overlap": "No two executions overlap; a stale one writes nothing and acks nothing",
  "never repeated":
    "What is stored is never done again; what nobody knows the end of is never tried again in silence",
  "nothing lost": "Nothing accepted is lost: it is done, or it is a dead letter with its reason",
  explained: "Every sequence is explained, or named",
} as const;
export type PromiseName = keyof typeof promises;

/** What is known of a drill before it is run. */
export interface Facts {
  readonly name: string;
  /** What happens, in one sentence. */
  readonly what: string;
  readonly fault: FaultKind;
  /** The promise that it puts to the test first. All are judged. */
  readonly about: PromiseName;
  readonly needs: readonly Need[];
  /** How long it takes about, on a machine at rest, with an ack_wait of 2 s. */
  readonly seconds: number;
  /** The most that each of its tasks may spend on its model, in dollars. */
  readonly budget?: number;
  /** The most that its own server may keep on its disk: "4MB". No limit where it is left out. */
  readonly storage?: string;
  /** Settings of its own, on the throw-away stack: on a target those that are there hold. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Only what is done to processes needs no hold over servers. */
export function runsOnTarget({ needs }: Facts): boolean {
  return needs.length === 0;
}
