import { showDuration } from "../task/duration.ts";
import { PawlError } from "../task/errors.ts";

export type Fields = Readonly<Record<string, unknown>>;

/** A field of a stream or consumer that is not as it should be. */
export interface Difference {
  readonly field: string;
  readonly have: unknown;
  readonly want: unknown;
}

/** The server leaves out fields that are empty or zero. */
export function differences(wanted: object, there: Fields): Difference[] {
  return Object.entries(wanted).flatMap(([field, want]) => {
    const have = there[field];
    const enough = field === "num_replicas" && (have as number) >= (want as number);
    const isSame = JSON.stringify(have) === JSON.stringify(want) || (isEmpty(have) && isEmpty(want));
    return isSame || enough ? [] : [{ field, have, want }];
  });
}

/**
 * Whether healthy tasks of a consumer may lose their holder or become dead letters by this difference: redelivered too
 * soon, given up on too early, or more than one at once. More patience than is asked for is another version's choice.
 */
export function isUnsafe({ field, have, want }: Difference, wanted: { readonly ack_wait: number }): boolean {
  switch (field) {
    case "ack_wait":
      return Number(have) < Number(want);
    case "max_deliver":
      return Number(have) > 0 && Number(have) < Number(want);
    case "max_ack_pending":
      return true;
    // It replaces ack_wait, by one for each delivery.
    case "backoff":
      return (have as number[]).some((wait) => wait < wanted.ack_wait);
    default:
      return false;
  }
}

export function isEmpty(value: unknown): boolean {
  return (
    value === undefined ||
    value === 0 ||
    value === "" ||
    value === false ||
    (Array.isArray(value) && value.length === 0)
  );
}

const NANOS = new Set(["ack_wait", "backoff", "duplicate_window", "inactive_threshold", "max_age"]);

export function shown(field: string, value: unknown): string {
  if (NANOS.has(field) && typeof value === "number") return showDuration(value / 1_000_000);
  if (NANOS.has(field) && Array.isArray(value))
    return `[${value.map((one) => shown(field, one)).join(", ")}]`;
  return JSON.stringify(value) ?? "unset";
}

/** "ack_wait is 1s and should be 30s" */
export function listed(drift: readonly Difference[]): string {
  return drift
    .map(({ field, have, want }) => `${field} is ${shown(field, have)} and should be ${shown(field, want)}`)
    .join("; ");
}

export function cannotChange(what: string, drift: readonly Difference[]): PawlError {
  return new PawlError(
    "queue_drift",
    `${what} can't be made to match: ${listed(drift)}. Drain it and set PAWL_GENERATION one higher, or delete it if it is empty`,
  );
}
