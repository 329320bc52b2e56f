import { PawlError } from "../../errors/errors.ts";
import type { FieldDifference, Fields } from "../../ports/queue-fields.ts";
import { showDuration } from "../../values/duration.ts";

/** The server leaves out fields that are empty or zero. */
export function differences(wanted: object, there: Fields): FieldDifference[] {
  return Object.entries(wanted).flatMap(([field, want]) => {
    const have = there[field];
    const enough = field === "num_replicas" && (have as number) >= (want as number);
    const isSame = JSON.stringify(have) === JSON.stringify(want) || (isEmpty(have) && isEmpty(want));
    return isSame || enough ? [] : [{ field, have, want }];
  });
}

export function isEmpty(value: unknown): boolean {
  return (
    value === undefined ||
    value === null ||
    value === 0 ||
    value === "" ||
    value === false ||
    (Array.isArray(value) && value.length === 0)
  );
}

const NANOS = new Set([
  "ack_wait",
  "backoff",
  "duplicate_window",
  "inactive_threshold",
  "max_age",
  "max_expires",
]);

export function shown(field: string, value: unknown): string {
  if (NANOS.has(field) && typeof value === "number" && value > 0) return showDuration(value / 1_000_000);
  if (NANOS.has(field) && Array.isArray(value))
    return `[${value.map((one) => shown(field, one)).join(", ")}]`;
  return JSON.stringify(value) ?? "unset";
}

/** "ack_wait is 1s and should be 30s" */
export function listed(drift: readonly FieldDifference[]): string {
  return drift
    .map(({ field, have, want }) => `${field} is ${shown(field, have)} and should be ${shown(field, want)}`)
    .join("; ");
}

export function cannotChange(what: string, drift: readonly FieldDifference[]): PawlError {
  return new PawlError(
    "queue_drift",
    `${what} can't be made to match: ${listed(drift)}. Drain it and set PAWL_GENERATION one higher, or delete it if it is empty`,
  );
}
