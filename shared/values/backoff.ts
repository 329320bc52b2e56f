/** Exponential with full jitter over its upper half: 1 s, 2 s, 4 s … `most`, each between half and whole. */
export function backoff(attempt: number, random: number, first = 1_000, most = 300_000): number {
  const whole = Math.min(most, first * 2 ** Math.min(attempt - 1, 30));
  return Math.round(whole / 2 + (whole / 2) * random);
}
