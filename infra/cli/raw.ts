import type { RawMessage } from "../../shared/task/document.ts";

/** Most characters that are shown of a message. */
const SHOWN = 4_000;

/** A message that was no task, as text; undefined where its bytes are none. */
export function rawText({ base64, truncated }: RawMessage): string | undefined {
  try {
    // What was cut may end in the middle of a character.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(base64, "base64"), {
      stream: truncated,
    });
  } catch {
    return undefined;
  }
}

export function rawLines(raw: RawMessage): string[] {
  const { base64, bytes, truncated, subject } = raw;
  const text = rawText(raw);
  const shown = (text ?? base64).slice(0, SHOWN);
  const isCut = shown.length < (text ?? base64).length;
  const kept = truncated ? `, of which ${Buffer.byteLength(base64, "base64")} are kept` : "";
  return [
    `message     ${bytes} bytes on ${subject}${kept}, as ${text === undefined ? "base64" : "text"}:`,
    ...shown.split("\n").map((line) => `  ${line}`),
    ...(isCut ? ["  … (--json shows all)"] : []),
  ];
}
