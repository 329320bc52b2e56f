import { type Report, verdictOf } from "../figures/report.ts";
import { sections } from "./sections.ts";

/** What a model or a stranger wrote must stay one cell, and no markup. */
function cell(text: string): string {
  return text.replace(/[\\`*_{}[\]<>#|]/g, (char) => `\\${char}`).replace(/\s+/g, " ");
}

export function markdown(report: Report): string {
  const parts = sections(report).map(({ title, isPart, lines = [], head, rows = [] }) => {
    const row = (cells: readonly string[]) => `| ${cells.map(cell).join(" | ")} |`;
    const table =
      head && rows.length > 0 ? [row(head), `|${" --- |".repeat(head.length)}`, ...rows.map(row)] : [];
    return [
      `${isPart ? "###" : "##"} ${cell(title)}`,
      ...lines.map(cell),
      ...(table.length > 0 ? [table.join("\n")] : []),
    ].join("\n\n");
  });
  return `# Pawl ${report.name}\n\n**${cell(verdictOf(report).line)}**\n\n${parts.join("\n\n")}\n`;
}
