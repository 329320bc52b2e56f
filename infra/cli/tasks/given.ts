import { PawlError } from "../../../shared/errors/errors.ts";
import { LABEL_LIMIT, MOST_LABELS } from "../../../shared/task/envelope.ts";
import { parseDuration } from "../../../shared/values/duration.ts";

/** Firestore can't store a later one. */
const LATEST = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** A time with its offset, so that it means the same everywhere; or a duration from now on. */
export function timeOf(text: string): number {
  const isWhole = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text);
  const ms = isWhole ? undefined : parseDuration(text);
  const at = isWhole ? Date.parse(text) : ms === undefined ? Number.NaN : Date.now() + ms;
  if (at <= LATEST) return at;
  const should = "a time with its offset, such as 2026-12-24T18:00:00Z, or a duration, such as 90m";
  throw new PawlError("usage", `--at is ${JSON.stringify(text)}; it should be ${should}`);
}

/** Of name=value, each. */
export function labelsOf(given: readonly string[]): Record<string, string> | undefined {
  const labels = new Map<string, string>();
  for (const one of given) {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(one) ?? [];
    if (name === undefined || value === undefined || Math.max(name.length, value.length) > LABEL_LIMIT)
      throw new PawlError(
        "usage",
        `--label is ${JSON.stringify(one.slice(0, 100))}; it should be name=value, each of at most ${LABEL_LIMIT} characters`,
      );
    labels.set(name, value);
  }
  if (labels.size > MOST_LABELS)
    throw new PawlError("usage", `There are ${labels.size} labels; ${MOST_LABELS} is the most`);
  return given.length > 0 ? Object.fromEntries(labels) : undefined;
}
