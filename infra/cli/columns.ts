/** Rows under a heading, each column as wide as its widest cell. Numbers stand to the right. */
export function columns(
  head: readonly string[],
  rows: readonly (readonly (string | number)[])[],
): readonly string[] {
  const widths = head.map((name, i) => Math.max(name.length, ...rows.map((row) => String(row[i]).length)));
  const line = (cells: readonly (string | number)[]) =>
    cells
      .map((cell, i) => {
        const isNumber = rows.length > 0 && rows.every((row) => typeof row[i] === "number");
        const width = widths[i] ?? 0;
        return isNumber ? String(cell).padStart(width) : String(cell).padEnd(width);
      })
      .join("  ")
      .trimEnd();
  return [line(head), ...rows.map(line)];
}
