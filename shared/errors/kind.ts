/**
 * Disposition says what becomes of a task that meets the error:
 * "retry" tries again later, "fail" is a dead letter, "abandon" leaves the task to whoever holds it now.
 */
export type Disposition = "retry" | "fail" | "abandon";

export interface ErrorKind {
  readonly disposition: Disposition;
  readonly meaning: string;
  readonly remedy: string;
}
