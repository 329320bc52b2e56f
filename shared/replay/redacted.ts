import { PawlError } from "../errors/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../values/json.ts";
import { type Redact, redactor } from "../values/redact.ts";
import type { ExportedJournal } from "./exported.ts";

const SHOWN = "[redacted]";

/** The same journal, in which no known secret is. */
export function withoutSecrets(journal: ExportedJournal, redact: Redact): ExportedJournal {
  return JSON.parse(redact(JSON.stringify(journal))) as ExportedJournal;
}

/**
 * Without what its task was given: all texts of the input; or only what lies under these paths, such as
 * "customer.email", numbers too. Those texts are taken out wherever else they stand whole, and what models and tools were asked
 * is left out, with the hashes of it. Where no path is named numbers, true and false stay: a handler counts and branches by them.
 */
export function withoutInput(journal: ExportedJournal, paths: readonly string[] = []): ExportedJournal {
  const { input } = journal.task;
  const gone: string[] = [];
  const hidden = (value: Json, isNamed: boolean): Json => {
    if (typeof value === "string") gone.push(value);
    if (typeof value === "string") return SHOWN;
    if (Array.isArray(value)) return value.map((one) => hidden(one, isNamed));
    if (isJsonObject(value))
      return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, hidden(one, isNamed)]));
    if (!isNamed || value === null) return value;
    return typeof value === "number" ? 0 : false;
  };
  const redactedInput =
    paths.length === 0
      ? (hidden(input, false) as JsonObject)
      : paths.reduce((rest, path) => at(rest, path.split("."), path, (one) => hidden(one, true)), input);
  const texts = Object.fromEntries(gone.map((text, i) => [String(i), text]));
  const redact = redactor(texts, () => SHOWN);
  const entries = journal.entries.map((entry) => {
    const {
      asked: _,
      askedHash: __,
      ...rest
    } = entry as typeof entry & { asked?: unknown; askedHash?: unknown };
    return rest;
  });
  const rest = JSON.parse(redact(JSON.stringify({ ...journal, entries }))) as ExportedJournal;
  return {
    ...rest,
    redacted: paths.length === 0 ? ["input"] : paths.map((path) => `input.${path}`),
    task: { ...rest.task, input: redactedInput },
  };
}

function at(
  value: JsonObject,
  [name = "", ...more]: readonly string[],
  path: string,
  change: (value: Json) => Json,
): JsonObject {
  const there = Object.hasOwn(value, name) ? value[name] : undefined;
  if (there === undefined || (more.length > 0 && !isJsonObject(there)))
    throw new PawlError("input_invalid", `The task's input has no ${JSON.stringify(path.slice(0, 200))}`);
  return {
    ...value,
    [name]: more.length === 0 ? change(there) : at(there as JsonObject, more, path, change),
  };
}
