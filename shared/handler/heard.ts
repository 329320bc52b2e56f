/** A failure that the journal keeps, as a handler hears it: a rejection, a deadline that passed, a child that failed, a refusal. */
export interface Heard {
  /** The handler makes a call. `alone`: nothing else is under way. */
  began(alone: boolean): void;
  /** A call is about to tell the handler of a failure; `error`: what it throws, if it throws. */
  failed(key: string, error?: unknown): void;
  /** The failures that a handler which has thrown this failed on, by the keys of their calls. */
  failedOn(thrown: unknown): string[];
}

/**
 * A handler that goes on after a failure has dealt with it: what came later followed from it, and it is not what the task
 * failed on. So a failure counts if no call was made after the handler heard it. Where branches run beside each other, a
 * call after it may be of another branch: there it also counts if the handler threw that very error, or one that names it
 * as its cause.
 */
export function hearing(): Heard {
  const failures: { key: string; error: unknown; made: number; alone: number }[] = [];
  let made = 0;
  let madeAlone = 0;
  return {
    began: (alone) => {
      made++;
      if (alone) madeAlone++;
    },
    failed: (key, error) => void failures.push({ key, error, made, alone: madeAlone }),
    failedOn: (thrown) => {
      const causes = causesOf(thrown);
      const last = failures.filter(
        (one) => one.made === made || (one.alone === madeAlone && causes.has(one.error)),
      );
      return [...new Set(last.map(({ key }) => key))];
    },
  };
}

/** Deeper than this nobody wraps an error. */
const DEEPEST = 10;

/** An error, what caused it, and those that it stands for. */
function causesOf(thrown: unknown, depth = 0, found = new Set<unknown>()): ReadonlySet<unknown> {
  if (!(thrown instanceof Error) || depth > DEEPEST || found.has(thrown)) return found;
  found.add(thrown);
  causesOf(thrown.cause, depth + 1, found);
  if (thrown instanceof AggregateError) for (const one of thrown.errors) causesOf(one, depth + 1, found);
  return found;
}
