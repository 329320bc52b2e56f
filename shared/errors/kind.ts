/**
 * Disposition says what becomes of a task that meets the error:
 * "retry" tries again later, "fail" is a dead letter, "abandon" leaves the task to whoever holds it now.
 */
export type Disposition = "retry" | "fail" | "abandon";

export interface ErrorKind {
  readonly disposition: Disposition;
  /** The API's answer: 4xx where another request would do, 503 where the same one later may, 500 otherwise. */
  readonly status: number;
  /** What a command ends with: 2 where calling it differently, or another setting, would do. */
  readonly exitCode: 1 | 2;
  readonly meaning: string;
  readonly remedy: string;
}
