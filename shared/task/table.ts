import type { State, Task } from "./document.ts";

const LIVE = ["scheduled", "dispatched", "running", "waiting", "in_doubt"] as const;
const FINAL = ["completed", "failed", "cancelled"] as const;
const ANY = [...LIVE, ...FINAL] as const;
export const states: readonly State[] = ANY;

/** How a task comes to be: each way writes the first document of its id, or none. */
export interface Birth {
  readonly to: readonly State[];
  readonly by: string;
  readonly meaning: string;
}

export const births = {
  submit: {
    to: ["dispatched", "scheduled"],
    by: "submit",
    meaning: "somebody submits it, for now or for later",
  },
  adopt: {
    to: ["running"],
    by: "runner",
    meaning: "its message was published directly, and is its own submit",
  },
  deadLetter: {
    to: ["failed"],
    by: "runner, dispatch",
    meaning: "a message that can't become a task is kept",
  },
} as const satisfies Record<string, Birth>;

export interface Transition {
  readonly from: readonly State[];
  /** "same" leaves the state as it is. */
  readonly to: readonly State[] | "same";
  readonly by: string;
  readonly meaning: string;
}

/** The only place where a task's state changes. The diagram in docs/lifecycle.md is drawn from it. */
export const transitions = {
  dispatch: { from: ["scheduled"], to: ["dispatched"], by: "dispatch", meaning: "it is due" },
  rollback: {
    from: ["dispatched"],
    to: ["scheduled"],
    by: "submit, dispatch",
    meaning: "its publish definitely failed",
  },
  requeue: {
    from: ["dispatched", "running"],
    to: ["dispatched"],
    by: "dispatch",
    meaning: "its message is gone, or waits while the task must not",
  },
  published: {
    from: ["dispatched"],
    to: "same",
    by: "submit, dispatch",
    meaning: "its message, under its submitter's own Msg-Id, is there",
  },
  claim: { from: ["dispatched"], to: ["running"], by: "runner", meaning: "a runner took its message" },
  takeover: {
    from: ["running"],
    to: ["running"],
    by: "runner",
    meaning: "its holder fell silent and the message came again",
  },
  start: {
    from: ["running"],
    to: "same",
    by: "runner",
    meaning: "no earlier holder can still act: the handler starts",
  },
  complete: { from: ["running"], to: ["completed"], by: "runner", meaning: "the handler returned" },
  retry: {
    from: ["running"],
    to: ["scheduled"],
    by: "runner",
    meaning: "the handler failed, to be tried again",
  },
  hold: {
    from: ["running"],
    to: ["dispatched"],
    by: "runner",
    meaning: "the handler failed on a strict lane, which waits for it",
  },
  handOff: {
    from: ["running"],
    to: ["dispatched", "scheduled"],
    by: "runner",
    meaning: "its runner must stop, or has too little time for it",
  },
  sleep: { from: ["running"], to: ["scheduled"], by: "runner", meaning: "the handler sleeps" },
  wait: {
    from: ["running"],
    to: ["waiting"],
    by: "runner",
    meaning: "the handler waits for an approval or event",
  },
  doubt: {
    from: ["running"],
    to: ["in_doubt"],
    by: "runner",
    meaning: "an effect began and nobody knows whether it happened",
  },
  fail: { from: ["running"], to: ["failed"], by: "runner", meaning: "it can't be done: a dead letter" },
  exhaust: {
    from: ["dispatched", "running"],
    to: ["failed"],
    by: "runner, dispatch",
    meaning: "it crashed, or was delivered, too often",
  },
  requestCancel: {
    from: ["scheduled", "dispatched", "running", "waiting"],
    to: "same",
    by: "operator",
    meaning: "its holder is asked to stop",
  },
  cancel: {
    from: ["scheduled", "dispatched", "running", "waiting", "in_doubt"],
    to: ["cancelled"],
    by: "operator, runner",
    meaning: "it was cancelled",
  },
  signal: {
    from: LIVE,
    to: "same",
    by: "operator",
    meaning: "an answer or event is stored, however early it came",
  },
  wake: {
    from: ["waiting"],
    to: ["dispatched"],
    by: "operator, dispatch",
    meaning: "what it waited for came, or its deadline",
  },
  resolve: {
    from: ["in_doubt"],
    to: ["dispatched", "failed"],
    by: "operator",
    meaning: "a person said whether the effect happened",
  },
  redrive: {
    from: ["failed"],
    to: ["dispatched"],
    by: "operator",
    meaning: "the dead letter is tried again",
  },
  surplus: {
    from: ANY,
    to: "same",
    by: "runner",
    meaning: "a message that has nothing to run is settled",
  },
  skip: { from: ANY, to: "same", by: "runner", meaning: "a settled message came again" },
  accept: {
    from: ANY,
    to: "same",
    by: "operator",
    meaning: "a person says that it is right as it is, though another hand changed it: it is sealed anew",
  },
  told: {
    from: ["waiting", "in_doubt", "failed"],
    to: "same",
    by: "dispatch",
    meaning: "the webhook was called, or will be again",
  },
  publishDuplicate: { from: ANY, to: "same", by: "submit", meaning: "it was submitted again" },
} as const satisfies Record<string, Transition>;

export function isFinal(task: Task): boolean {
  return (FINAL as readonly State[]).includes(task.state);
}
