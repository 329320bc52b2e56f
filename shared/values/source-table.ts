/**
 * Where the lines of a bundle come from: a small part of its source map, so small that the bundle carries it along. Every
 * file is named; of those that matter every line is known, of the rest only that the code is of that file.
 */
export interface SourceTable {
  readonly files: readonly string[];
  /** As in a source map: lines by ";", segments by ",", and in each the column, the file and the line, as differences. */
  readonly mappings: string;
}

export interface Place {
  readonly file: string;
  readonly line?: number;
}

/** What is needed of a source map. */
export interface SourceMap {
  readonly sources: readonly string[];
  readonly mappings: string;
}

const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** `nameOf`: what a source is called in the table; `isWhole`: whether its lines matter. */
export function tableOf(
  { sources, mappings }: SourceMap,
  nameOf: (source: string) => string,
  isWhole: (file: string) => boolean,
): SourceTable {
  const names = sources.map(nameOf);
  const files = [...new Set(names)];
  const at = { file: 0, line: 0 };
  const told = { file: 0, line: 0 };
  const before = { file: -1, line: -1 };
  const lines = mappings.split(";").map((line) => {
    let column = 0;
    let toldColumn = 0;
    return segmentsOf(line).flatMap(([columns = 0, source = 0, sourceLines = 0]) => {
      column += columns;
      at.file += source;
      at.line += sourceLines;
      const name = names[at.file] ?? "";
      const file = files.indexOf(name);
      const here = isWhole(name) ? at.line + 1 : 0;
      if (file === before.file && here === before.line) return [];
      Object.assign(before, { file, line: here });
      const segment = [column - toldColumn, file - told.file, here - told.line].map(encoded).join("");
      toldColumn = column;
      Object.assign(told, before);
      return [segment];
    });
  });
  return { files, mappings: lines.map((line) => line.join(",")).join(";") };
}

/** Which line of which source stands there. Lines count from 1, columns from 0. */
export function placeIn({ files, mappings }: SourceTable, line: number, column: number): Place | undefined {
  let [file, sourceLine] = [0, 0];
  let found: Place | undefined;
  for (const [i, text] of mappings.split(";").slice(0, line).entries()) {
    let at = 0;
    for (const [columns = 0, filesOn = 0, linesOn = 0] of segmentsOf(text)) {
      at += columns;
      if (i === line - 1 && at > column) return found;
      file += filesOn;
      sourceLine += linesOn;
      found = { file: files[file] ?? "", ...(sourceLine > 0 && { line: sourceLine }) };
    }
  }
  return found;
}

function segmentsOf(line: string): number[][] {
  return line === "" ? [] : line.split(",").map(decoded);
}

function decoded(segment: string): number[] {
  const numbers: number[] = [];
  let [value, shift] = [0, 0];
  for (const digit of segment) {
    const bits = DIGITS.indexOf(digit);
    value += (bits & 31) << shift;
    shift += 5;
    if (bits & 32) continue;
    numbers.push(value & 1 ? -(value >> 1) : value >> 1);
    [value, shift] = [0, 0];
  }
  return numbers;
}

function encoded(value: number): string {
  let left = value < 0 ? (-value << 1) | 1 : value << 1;
  let text = "";
  do {
    const bits = left & 31;
    left >>= 5;
    text += DIGITS[left > 0 ? bits | 32 : bits];
  } while (left > 0);
  return text;
}
