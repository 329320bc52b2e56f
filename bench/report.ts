import type { Machine } from "./machine.ts";
import type { Row, Spread } from "./spread.ts";

/** A bench that gave no figures, and why. */
export interface NotRun {
  readonly bench: string;
  readonly why: string;
  /** It could have been run, and went wrong. */
  readonly isFailure: boolean;
}

export interface Result {
  readonly machine: Machine;
  readonly rounds: number;
  readonly rows: readonly Row[];
  readonly notRun: readonly NotRun[];
}

/** Whether anything is not as it must be. */
export const isMissed = ({ rows, notRun }: Result) =>
  rows.some(({ isHeld }) => isHeld === false) || notRun.some(({ isFailure }) => isFailure);

const HEAD = ["bench", "", "Pawl", "against", "", "ratio", "must be", ""] as const;

/** A figure with three digits that count. */
export function digits(value: number): string {
  if (!Number.isFinite(value)) return "?";
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en");
  return value
    .toPrecision(3)
    .replace(/(\.\d*?)0+$/, "$1")
    .replace(/\.$/, "");
}

const range = ({ median, least, most }: Spread, unit: string) =>
  `${digits(median)} ${unit} (${digits(least)} to ${digits(most)})`;

const ratioOf = ({ median, least, most }: Spread) =>
  `${median.toFixed(2)} × (${least.toFixed(2)} to ${most.toFixed(2)})`;

function cellsOf({ bench, what, unit, pawl, against, ratio, required = "", isHeld }: Row): string[] {
  const verdict = isHeld === undefined ? "" : isHeld ? "held" : "MISSED";
  const other = against ? [against.name, range(against, unit)] : ["", ""];
  return [bench, what, range(pawl, unit), ...other, ratio ? ratioOf(ratio) : "", required, verdict];
}

const notRunOf = ({ bench, why, isFailure }: NotRun) =>
  `${bench}: ${isFailure ? "FAILED" : "not run"}. ${why}`;

function settingOf({ machine, rounds }: Result): string {
  const { date, processor, cores, memoryGb, load, versions } = machine;
  const named = Object.entries(versions).map(([name, version]) => `${name} ${version}`);
  return `${date} UTC, ${cores} cores (${processor}), ${memoryGb} GB, load ${load.before} before and ${load.after} after; ${rounds} interleaved rounds; ${named.join(", ")}`;
}

export function asText(result: Result): string[] {
  const rows = [HEAD, ...result.rows.map(cellsOf)];
  const widths = HEAD.map((_, column) => Math.max(...rows.map((row) => (row[column] as string).length)));
  const lines = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] as number))
      .join("  ")
      .trimEnd(),
  );
  return [settingOf(result), "", ...lines, ...result.notRun.map(notRunOf)];
}

/** `chart`: the file beside it. */
export function asMarkdown(result: Result, chart: string): string {
  const row = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [
    `# Bench of ${result.machine.date.replace("T", " ")}`,
    "",
    `${settingOf(result)}.`,
    "",
    "Each figure is the median of the rounds (the least to the most). A ratio is the median of the rounds' own ratios; only",
    "ratios may be compared with another run's. What is measured: [docs/bench.md](../../docs/bench.md).",
    "",
    `![Ratios](${chart})`,
    "",
    row(HEAD),
    `|${HEAD.map(() => " --- ").join("|")}|`,
    ...result.rows.map((one) => row(cellsOf(one))),
    "",
    ...result.notRun.map((one) => `- ${notRunOf(one)}`),
    ...(result.notRun.length > 0 ? [""] : []),
  ].join("\n");
}
