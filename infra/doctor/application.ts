/** What an application does with a queue, which no configuration of JetStream says. Times are in milliseconds. */
export interface Application {
  readonly heartbeat?: number;
  readonly longest_work?: number;
  readonly workers?: number;
  readonly acks?: readonly Ack[];
  readonly nak_delay?: number;
  readonly term_reason?: boolean;
  readonly dead_letters?: (typeof DEAD_LETTERS)[number];
  readonly record_ttl?: number;
  readonly ack_wait_from_env?: boolean;
  readonly record_follows_ack_wait?: boolean;
  readonly publish_retry?: number;
  readonly redrive_id?: (typeof REDRIVE_IDS)[number];
  readonly dispatch_timeout?: number;
  readonly rolls_back?: (typeof ROLLBACKS)[number];
  readonly attempts_per_failure?: number;
  readonly names_reused?: boolean;
  readonly platform_limit?: number;
  readonly hands_off?: boolean;
  readonly sync?: (typeof SYNCS)[number];
}

export const ACKS = ["ack", "nak", "nak_delay", "term", "in_progress"] as const;
export type Ack = (typeof ACKS)[number];
export const DEAD_LETTERS = ["none", "subscription", "stream"] as const;
export const REDRIVE_IDS = ["same", "new"] as const;
export const ROLLBACKS = ["always", "when_definite"] as const;
export const SYNCS = ["interval", "always"] as const;

export interface ApplicationField {
  /** A list of words: one of them; of which `several` may be said. */
  readonly form: "duration" | "number" | "flag" | readonly string[];
  readonly several?: true;
  readonly meaning: string;
}

/** docs/doctor.md is printed from it. */
export const applicationFields = {
  heartbeat: {
    form: "duration",
    meaning: "How often a consumer says that it is at work (`+WPI`, in progress); `none` where it does not.",
  },
  longest_work: { form: "duration", meaning: "How long the longest work on one message takes." },
  workers: { form: "number", meaning: "How many messages are worked on at once; 1 where it is left out." },
  acks: {
    form: ACKS,
    several: true,
    meaning: "The words that the consumer uses. `nak` is one without a delay.",
  },
  nak_delay: { form: "duration", meaning: "The longest delay of a nak." },
  term_reason: { form: "flag", meaning: "Whether `term` is sent with a reason." },
  dead_letters: {
    form: DEAD_LETTERS,
    meaning:
      "Who takes the server's word that it gave a message up: nobody, a subscription, or a stream that captures it.",
  },
  record_ttl: {
    form: "duration",
    meaning:
      "How long the record of finished work is kept, by which a repeat is known; `none` where there is none, `forever` where it stays.",
  },
  ack_wait_from_env: {
    form: "flag",
    meaning: "Whether a deployment can set another ack_wait, by its environment say.",
  },
  record_follows_ack_wait: { form: "flag", meaning: "Whether `record_ttl` is computed from ack_wait." },
  publish_retry: {
    form: "duration",
    meaning: "How long after its first try a publisher may publish a message again under the same Msg-Id.",
  },
  redrive_id: { form: REDRIVE_IDS, meaning: "Under which Msg-Id a message that failed is published again." },
  dispatch_timeout: {
    form: "duration",
    meaning: "How long after its publish a task that nobody began is taken for lost.",
  },
  rolls_back: {
    form: ROLLBACKS,
    meaning:
      "When a publish that failed is taken back: always, or only when the server certainly did not take it.",
  },
  attempts_per_failure: { form: "number", meaning: "How many attempts one failure is counted as." },
  names_reused: {
    form: "flag",
    meaning: "Whether streams or consumers are deleted, and made anew under the same names.",
  },
  platform_limit: { form: "duration", meaning: "The longest run that the consumer's platform allows." },
  hands_off: {
    form: "flag",
    meaning:
      "Whether a consumer that runs out of its platform's time stores what it did and lets another go on.",
  },
  sync: { form: SYNCS, meaning: "The server's `sync_interval`: `always`, or every so often." },
} as const satisfies Record<keyof Application, ApplicationField>;
