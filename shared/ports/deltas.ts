import type { HeldClaim } from "./bus.ts";

/** More of what a turn says than so many characters is not told while it runs. */
export const MOST_TOLD = 64_000;

/**
 * What a model says in a turn that is under way. Whoever follows it keeps the first `at` characters of what they have of this
 * turn, and puts `text` behind them: so a turn that is asked again starts over, at 0.
 */
export interface Delta {
  /** The turn's key in the journal. */
  readonly key: string;
  readonly at: number;
  readonly text: string;
}

/**
 * A holder's side: lets whoever asks read turns while they run. Never waits, never throws, keeps nothing; where nobody has
 * asked, nothing is read or sent.
 */
export interface DeltaHolder {
  /** Turns of this claim are about to begin: from here on it may be asked. */
  listen(claim: HeldClaim): void;
  /**
   * A turn is under way. `said`: all that was said in it until now, undefined where that may not be told any more. The returned
   * function ends it, and tells the rest where all of it is given.
   */
  say(claim: HeldClaim, key: string, said: () => string | undefined): (whole?: string) => void;
}

/** A listener's side. */
export interface DeltaListener {
  /**
   * Asks the holder of a claim for what its turns say, and tells it, each turn from its beginning and without gaps, until it is
   * stopped. Nobody may rely on hearing all of it, or any.
   */
  hear(claim: HeldClaim, heard: (delta: Delta) => void): Hearing;
}

export interface Hearing {
  /** The holder has done something: if it was not there to be asked, it may be now. */
  again(): void;
  stop(): void;
}
