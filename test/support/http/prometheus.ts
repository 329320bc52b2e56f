import { expect } from "vitest";

/** Reads Prometheus's text format 0.0.4, strictly: what is not of it is an error. Returns the samples. */
export function samples(exposition: string): Map<string, number> {
  expect(exposition.endsWith("\n")).toBe(true);
  const helped = new Set<string>();
  const typed = new Map<string, string>();
  const found = new Map<string, number>();
  for (const line of exposition.slice(0, -1).split("\n")) {
    const [, help] = /^# HELP ([a-z_]+) \S.*$/.exec(line) ?? [];
    const [, name, type] = /^# TYPE ([a-z_]+) (counter|gauge)$/.exec(line) ?? [];
    const [, series, of, value] =
      /^(([a-z_]+)(?:\{(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+\})?) (\d+(?:\.\d+)?(?:e[-+]\d+)?)$/.exec(
        line,
      ) ?? [];
    if (help) {
      expect(helped, line).not.toContain(help);
      helped.add(help);
    } else if (name && type) {
      expect(typed, line).not.toContain(name);
      typed.set(name, type);
    } else {
      expect(series, `no line of the format: ${line}`).toBeDefined();
      expect([...typed.keys()].at(-1), "samples follow their own type").toBe(of);
      expect(found, line).not.toContain(series);
      found.set(series as string, Number(value));
    }
  }
  expect([...typed.keys()]).toEqual([...helped]);
  expect(
    [...typed.keys()].filter((name) => (typed.get(name) === "counter") !== name.endsWith("_total")),
  ).toEqual([]);
  return found;
}
