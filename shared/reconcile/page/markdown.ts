import { type Report, verdictOf } from "../figures/report.ts";
import { findingSections } from "./findings.ts";
import { headlines } from "./headlines.ts";
import type { Section } from "./section.ts";
import { tables } from "./sections.ts";

/** What a model or a stranger wrote must stay one cell, and no markup. */
function cell(text: string): string {
  return text.replace(/[\\`*_{}[\]<>#|]/g, (char) => `\\${char}`).replace(/\s+/g, " ");
}

export function markdown(report: Report): string {
  const parts = [inShort(report), ...findingSections(report), ...tables(report)].map(part);
  return `# Pawl ${report.name}\n\n**${cell(verdictOf(report).line)}**\n\n${parts.join("\n\n")}\n`;
}

function inShort(report: Report): Section {
  return {
    title: "In short",
    head: ["", "now", "against the one before", ""],
    rows: headlines(report).map(({ label, value, note, change = "-" }) => [label, value, change, note]),
  };
}

function part({ title, isPart, lines = [], head, rows = [], isNumeric }: Section): string {
  const row = (cells: readonly string[]) => `| ${cells.map(cell).join(" | ")} |`;
  const rule = (columns: number) => `| --- |${(isNumeric ? " ---: |" : " --- |").repeat(columns - 1)}`;
  const table = head && rows.length > 0 ? [row(head), rule(head.length), ...rows.map(row)] : [];
  return [
    `${isPart ? "###" : "##"} ${cell(title)}`,
    ...lines.map(cell),
    ...(table.length > 0 ? [table.join("\n")] : []),
  ].join("\n\n");
}
