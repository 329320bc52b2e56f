/** How bad it is. "broken": a promise did not hold. "look": somebody has to. "note": good to know. */
export type Severity = "broken" | "look" | "note";

/**
 * "standing": so it stands when it is looked for, and every reconciliation sees all of them; the newest one counts.
 * "happened": a reconciliation sees what is new since the one before; those of a week add up, each subject once.
 */
export type Nature = "standing" | "happened";

export interface FindingKind {
  readonly severity: Severity;
  readonly nature: Nature;
  /** What is counted. */
  readonly of: string;
  /** The repair that mends it, if the reconciliation may repair. */
  readonly mendedBy?: "dispatch" | "ack";
  readonly meaning: string;
  /** What Pawl did about it; of one that a repair mends, what the repair does. */
  readonly did: string;
  /** What is left to a person. The report's first line has its first sentence. */
  readonly todo: string;
}
