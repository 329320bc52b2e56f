const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** "30s", "1.5m", "90d" → milliseconds; undefined when it is not a duration. */
export function parseDuration(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim());
  if (!match) return undefined;
  return Math.round(Number(match[1]) * UNITS[match[2] as keyof typeof UNITS]);
}

/** As a setting is written, by the largest unit that divides it evenly: 90000 → "90s". */
export function showDuration(ms: number): string {
  for (const unit of ["d", "h", "m", "s"] as const) {
    if (ms !== 0 && ms % UNITS[unit] === 0) return `${ms / UNITS[unit]}${unit}`;
  }
  return `${Math.round(ms)}ms`;
}

const SPOKEN = [
  ["d", UNITS.d, "h", UNITS.h],
  ["h", UNITS.h, "min", UNITS.m],
  ["min", UNITS.m, "s", UNITS.s],
] as const;

/** As people write it, its two largest units: "340 ms", "1.3 s", "42 s", "2 min 5 s", "3 h 20 min". */
export function sayDuration(ms: number): string {
  if (ms < 999.5) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 9_950) return `${Math.round(ms / 100) / 10} s`;
  for (const [name, unit, smaller, step] of SPOKEN) {
    // Rounded first: 59 min 59.9 s are an hour.
    const steps = Math.round(ms / step);
    const rest = steps % (unit / step);
    if (steps * step < unit) continue;
    return `${Math.floor((steps * step) / unit)} ${name}${rest > 0 ? ` ${rest} ${smaller}` : ""}`;
  }
  return `${Math.round(ms / 1_000)} s`;
}
