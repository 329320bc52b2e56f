import type { State, Task } from "./document.ts";

interface StateFacts {
  /** As people read it. */
  readonly name: string;
  /** Nothing but a redrive moves it on. */
  readonly isFinal: boolean;
  readonly meaning: string;
}

/** All states there are. Reports keep a state by its place in this list: a new one comes last. */
export const stateFacts = {
  scheduled: {
    name: "scheduled",
    isFinal: false,
    meaning:
      "It is due later, or was taken back from its queue: `dispatch` gives it a message when its time has come.",
  },
  dispatched: {
    name: "queued",
    isFinal: false,
    meaning:
      "It has a message in its queue, or is about to get one: the next runner that pulls it claims the task.",
  },
  running: {
    name: "running",
    isFinal: false,
    meaning: "A runner has claimed it, holds its lease, and runs its handler.",
  },
  waiting: {
    name: "waiting",
    isFinal: false,
    meaning:
      "Its handler waits for an approval, an event or a child; it has no message until that comes, or its deadline.",
  },
  in_doubt: {
    name: "in doubt",
    isFinal: false,
    meaning: "An effect began, and nobody knows whether it happened: only a person moves it on.",
  },
  completed: {
    name: "completed",
    isFinal: true,
    meaning: "Its handler returned, and its result is stored. Nothing moves it any more.",
  },
  failed: {
    name: "failed",
    isFinal: true,
    meaning:
      "A dead letter: it can't be done, or was tried too often. A person may redrive it until it expires.",
  },
  cancelled: {
    name: "cancelled",
    isFinal: true,
    meaning: "Somebody cancelled it, and no effect of it is in doubt. Nothing moves it any more.",
  },
} as const satisfies Record<State, StateFacts>;

export const states = Object.keys(stateFacts) as State[];
const LIVE = states.filter((state) => !stateFacts[state].isFinal);

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
    from: states,
    to: "same",
    by: "runner",
    meaning: "a message that has nothing to run is settled",
  },
  skip: { from: states, to: "same", by: "runner", meaning: "a settled message came again" },
  accept: {
    from: states,
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
  publishDuplicate: { from: states, to: "same", by: "submit", meaning: "it was submitted again" },
} as const satisfies Record<string, Transition>;

export function isFinal({ state }: Pick<Task, "state">): boolean {
  return stateFacts[state].isFinal;
}
