/** How something that may pass is tried again. Times are in milliseconds. */
export interface Policy {
  /** What is tried, and what follows when it is given up: docs/architecture.md is printed from it. */
  readonly what: string;
  /** The first pause; each is twice as long as the one before, to the longest, with jitter. */
  readonly first: number;
  readonly longest: number;
  /** At most so many tries; without a number, as long as the caller may wait. */
  readonly tries?: number;
  /** For so long. */
  readonly lasts?: number;
}

/** Every retry of Pawl's own. What an agent's handler does again is in its limits (`attempts`, `backoff`). */
export const policies = {
  store: {
    what: "a request to the store by somebody who holds a message: until it is answered, or the guard gives up",
    first: 50,
    longest: 2_000,
  },
  patience: {
    what: "a write or publish whose caller waits: then the caller gets the error",
    first: 50,
    longest: 2_000,
    lasts: 15_000,
  },
  bystander: {
    what: "a guarded write that others were faster than, or a claim whose holder still answers: decided again",
    first: 50,
    longest: 2_000,
  },
  ack: {
    what: "an ack or nak that was not confirmed: for an ack wait, then the message comes again and is skipped",
    first: 50,
    longest: 2_000,
  },
  pull: {
    what: "a pull that failed: for as long as the runner runs",
    first: 50,
    longest: 2_000,
  },
  probe: {
    what: "a look whether the store is back, while nothing is pulled",
    first: 1_000,
    longest: 30_000,
  },
  witness: {
    what: "the word that an effect never began, by a holder that lost its lease before it could: then a person is asked",
    first: 50,
    longest: 30_000,
    lasts: 3_600_000,
  },
  modelTurn: {
    what: "a request to the model that was not answered: then the attempt fails, and the task is retried by its limits",
    first: 1_000,
    longest: 30_000,
    tries: 6,
  },
  webhook: {
    what: "a notice to the webhook about a task: by later sweeps, until it is taken",
    first: 60_000,
    longest: 3_600_000,
  },
  reportNotice: {
    what: "a notice to the webhook about a report: then only the report says it",
    first: 1_000,
    longest: 30_000,
    tries: 5,
  },
  reconcile: {
    what: "a question of a reconciliation: then the slice ends, and the next one goes on",
    first: 50,
    longest: 2_000,
    tries: 4,
  },
  // Fifty functions that end at the same moment are through by the tenth try; their last counts have no other flush.
  counters: {
    what: "adding to a shard of counters that others write too: then it is added with the next",
    first: 10,
    longest: 250,
    tries: 20,
  },
  spans: {
    what: "a batch of spans that the receiver of traces did not take: then it is dropped, and counted",
    first: 1_000,
    longest: 30_000,
    tries: 6,
  },
} as const satisfies Record<string, Policy>;

export type PolicyName = keyof typeof policies;
