export interface Account {
  readonly id: string;
  readonly state: string;
  /** How often its work was done, by the account of the outside world. */
  readonly done: number;
}

export interface Verdict {
  readonly twice: readonly string[];
  readonly lost: readonly string[];
  readonly ok: boolean;
}

/** Exactly once: completed, done, and done a single time; and nothing left in the queue. */
export function judge(accounts: readonly Account[], leftInQueue: number): Verdict {
  const twice = accounts.filter(({ done }) => done > 1).map(({ id }) => id);
  const lost = accounts.filter(({ state, done }) => state !== "completed" || done === 0).map(({ id }) => id);
  return { twice, lost, ok: twice.length === 0 && lost.length === 0 && leftInQueue === 0 };
}
