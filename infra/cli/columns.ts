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

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["m", 60_000],
  ["s", 1_000],
] as const;

/** How long something has lasted, for people: its two largest units. 3725000 → "1h 2m". */
export function lasted(ms: number): string {
  const first = UNITS.findIndex(([, unit]) => ms >= unit);
  if (first < 0) return "0s";
  const parts: string[] = [];
  let left = ms;
  for (const [name, unit] of UNITS.slice(first, first + 2)) {
    const count = Math.floor(left / unit);
    left -= count * unit;
    if (count > 0) parts.push(`${count}${name}`);
  }
  return parts.join(" ");
}
