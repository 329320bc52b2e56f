import { errorKinds, isPawlError, messageOf } from "../../shared/errors/errors.ts";
import type { Log, LogFields } from "../../shared/ports/log.ts";

/** Text that a model or a stranger wrote, safe to show as one line: control characters become visible. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the ones to make visible
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, (c) => {
    return `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

export function say(line: string): void {
  process.stdout.write(`${printable(line)}\n`);
}

export function sayJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** Log lines go to standard error: standard output is for the answer. */
export function logger(json: boolean): Log {
  return (level, event, fields = {}) => {
    const at = new Date().toISOString();
    const line = json
      ? JSON.stringify({ at, level, event, ...fields })
      : printable(
          `${at.slice(11, 23)} ${level === "info" ? "" : `${level.toUpperCase()} `}${event}${shown(fields)}`,
        );
    process.stderr.write(`${line}\n`);
  };
}

function shown(fields: LogFields): string {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}=${/^[\w.:-]+$/.test(String(value)) ? value : JSON.stringify(value)}`)
    .join("");
}

/** Says what went wrong and returns the exit code. */
export function sayError(error: unknown, json: boolean): number {
  const code = isPawlError(error) ? error.code : undefined;
  const message = messageOf(error);
  if (json)
    sayJson({
      error: { code: code ?? "unexpected", message, ...(code && { remedy: errorKinds[code].remedy }) },
    });
  else {
    const more = code
      ? `\n  ${errorKinds[code].remedy} (docs/errors.md#${code})`
      : `\n${(error as Error)?.stack ?? ""}`;
    const lines = message.split("\n").map(printable).join("\n  ");
    process.stderr.write(`pawl: ${lines}${more}\n`);
  }
  return errorKinds[code ?? "unexpected"].exitCode;
}
