import type { Clock } from "../ports/clock.ts";
import { backoff } from "../values/backoff.ts";
import { type Policy, type PolicyName, policies } from "./policies.ts";

/** What is asked of whoever wants something tried again. */
export interface Retrying {
  /** Whether an error may pass. Any other is thrown at once. */
  mayPass(error: unknown): boolean;
  /** Told of every try that failed and is repeated. */
  failed?(error: unknown, tries: number): void;
  /** Ends the tries, and the pauses between them. */
  readonly stop?: AbortSignal;
  /** Instead of what the policy says: for so long, in milliseconds. */
  readonly lasts?: number;
}

/** How long to pause after so many failures, in milliseconds. */
export function pauseAfter(name: PolicyName, failures: number): number {
  const { first, longest } = policies[name];
  return backoff(failures, Math.random(), first, longest);
}

export function pause(
  { clock }: { readonly clock: Pick<Clock, "sleep"> },
  name: PolicyName,
  failures: number,
  stop?: AbortSignal,
): Promise<void> {
  return clock.sleep(pauseAfter(name, failures), stop);
}

/** Asks until there is an answer, an error that does not pass, or the policy's end: then the last error is thrown. */
export async function retry<T>(
  deps: { readonly clock: Clock },
  name: PolicyName,
  ask: () => Promise<T>,
  { mayPass, failed, stop, lasts }: Retrying,
): Promise<T> {
  const policy: Policy = policies[name];
  const { tries = Number.POSITIVE_INFINITY } = policy;
  const until = deps.clock.monotonic() + (lasts ?? policy.lasts ?? Number.POSITIVE_INFINITY);
  for (let failures = 1; ; failures++) {
    try {
      return await ask();
    } catch (error) {
      const isOver = failures >= tries || deps.clock.monotonic() >= until || stop?.aborted;
      if (isOver || !mayPass(error)) throw error;
      failed?.(error, failures);
      await pause(deps, name, failures, stop);
    }
  }
}
