import type { LogLevel } from "../ports/log.ts";
import { byteLength } from "../values/json.ts";

/** A line that a handler logged. Handlers that start anew log anew: the fence says which start it was. */
export interface LogLine {
  readonly at: number;
  readonly fence: number;
  /** "info" is left out. */
  readonly level?: LogLevel;
  readonly text: string;
}

/** The newest lines of a task. */
export interface Logs {
  /** How many there have been, with those that made room. */
  readonly count: number;
  readonly lines: readonly LogLine[];
}

export interface Room {
  readonly lines: number;
  readonly bytes: number;
}

/** Of a task, in its document. */
export const LOGS_KEPT: Room = { lines: 100, bytes: 16 * 1024 };
/** In its journal's head, which is written with every entry: only what a document does not have yet, and less of it. */
export const LOGS_ON_HEAD: Room = { lines: 32, bytes: 4 * 1024 };
const LINE_CHARS = 1_000;
/** What a line takes beside its text. */
const LINE_BYTES = 64;

/** What a document and its journal's head say together: the head may have lines that its holder could not bring further. */
export function joined(document: Logs | undefined, head: Logs | undefined): Logs | undefined {
  const news = (head?.count ?? 0) - (document?.count ?? 0);
  if (!head || news <= 0) return document;
  const lines = [...(document?.lines ?? []), ...head.lines.slice(-news)];
  return within({ count: head.count, lines }, LOGS_KEPT);
}

export function within({ count, lines }: Logs, room: Room): Logs {
  let bytes = 0;
  let from = lines.length;
  while (from > 0 && lines.length - from < room.lines) {
    bytes += byteLength(lines[from - 1]?.text ?? "") + LINE_BYTES;
    if (bytes > room.bytes) break;
    from--;
  }
  return { count, lines: lines.slice(from) };
}

/** As a line keeps it. */
export function lineText(given: string): string {
  const text = String(given);
  if (text.length <= LINE_CHARS) return text.toWellFormed();
  return `${text.slice(0, LINE_CHARS).toWellFormed()}… (${text.length} characters)`;
}
