const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** "30s", "1.5m", "90d" → milliseconds; undefined when it is not a duration. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim());
  if (!match) return undefined;
  return Math.round(Number(match[1]) * UNITS[match[2] as keyof typeof UNITS]);
}

/** The largest unit that divides it evenly: 90000 → "90s". */
export function showDuration(ms: number): string {
  for (const unit of ["d", "h", "m", "s"] as const) {
    if (ms !== 0 && ms % UNITS[unit] === 0) return `${ms / UNITS[unit]}${unit}`;
  }
  return `${Math.round(ms)}ms`;
}
