import { errorKinds, isPawlError, messageOf } from "../../shared/errors/errors.ts";
import type { Log, LogFields } from "../../shared/ports/log.ts";
import { withDocs } from "../project.ts";

/**
 * What a terminal obeys instead of showing it, and what nobody sees: control characters, line separators, what turns the
 * direction of writing, what has no width. Not how an emoji is drawn.
 */
const UNSEEN = /(?![\ufe0e\ufe0f])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

const escaped = (unseen: string) =>
  Array.from({ length: unseen.length }, (_, i) => {
    return `\\u${unseen.charCodeAt(i).toString(16).padStart(4, "0")}`;
  }).join("");

/** Text that a model or a stranger wrote, safe to show as one line: what is not seen becomes visible. */
export function printable(text: string): string {
  return text.replace(UNSEEN, escaped);
}

/** The same of several lines: of Markdown, or of JSON, in which an escape means the same. */
export function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

/** Text of several lines, as a part of one: an author's summary or error, in a list. */
export function oneLine(text: string): string {
  return text.replace(/\s+/gu, " ").trim();
}

export function say(line: string): void {
  process.stdout.write(`${printable(line)}\n`);
}

/** Text that has the author's or a model's line ends in it: what follows the first line stands in the column of values. */
export function sayLines(text: string): void {
  for (const [i, line] of linesOf(text).entries())
    say(i === 0 ? line : `${" ".repeat(COLUMN)}${line}`.trimEnd());
}

/** Where values stand, right of what they are values of. */
export const COLUMN = 12;

export const linesOf = (text: string): string[] => text.trimEnd().split(/\r\n|[\n\r]/);

/** In JSON what is not seen stands in strings only, and an escape there means the same. */
export function sayJson(value: unknown): void {
  process.stdout.write(`${printable(JSON.stringify(value))}\n`);
}

/**
 * Ends the process when all that was said has arrived, or nobody reads it any more: to exit at once would cut off what a
 * reader that is slower than this has not taken yet.
 */
export async function endWhenSaid(): Promise<never> {
  const said = (stream: NodeJS.WriteStream) =>
    new Promise<void>((resolve) => {
      stream.once("error", () => resolve());
      stream.write("", () => resolve());
    });
  await Promise.all([said(process.stdout), said(process.stderr)]);
  process.exit();
}

/** Log lines go to standard error: standard output is for the answer. */
export function logger(json: boolean): Log {
  return (level, event, fields = {}) => {
    const at = new Date().toISOString();
    const line = json
      ? JSON.stringify({ at, level, event, ...fields })
      : `${at.slice(11, 23)} ${level === "info" ? "" : `${level.toUpperCase()} `}${event}${shown(fields)}`;
    process.stderr.write(`${printable(line)}\n`);
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
    process.stderr.write(withDocs(`pawl: ${lines}${more}\n`));
  }
  return errorKinds[code ?? "unexpected"].exitCode;
}
