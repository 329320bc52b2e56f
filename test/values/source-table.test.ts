import { SourceMap } from "node:module";
import { transformSync } from "esbuild";
import fc from "fast-check";
import { expect, test } from "vitest";
import { placeIn, tableOf } from "../../shared/values/source-table.ts";

const SOURCE = `export function first(list: string[]): string {
  const joined = list.map((one) => one.trim()).join(\`
  and
\`);
  if (joined.length > 40) throw new Error("too long: " + joined);
  return joined;
}

export const second = () => first(["a", "b"]).toUpperCase();
`;

test("every place of a minified file leads to the line that the whole map says", () => {
  const { code, map } = transformSync(SOURCE, {
    loader: "ts",
    minify: true,
    sourcemap: true,
    sourcefile: "a.ts",
  });
  const whole = new SourceMap(JSON.parse(map));
  const table = tableOf(
    JSON.parse(map),
    (name) => name,
    () => true,
  );
  expect(table.mappings.length).toBeLessThan(JSON.parse(map).mappings.length);
  const lines = code.split("\n");
  fc.assert(
    fc.property(fc.nat(lines.length - 1), fc.nat(200), (row, column) => {
      const entry = whole.findEntry(row, column) as { originalLine?: number };
      const found = placeIn(table, row + 1, column);
      expect(found?.line).toBe(entry.originalLine === undefined ? undefined : entry.originalLine + 1);
    }),
  );
});

test("of other files only the name is known, and it comes back to the one that matters", () => {
  // a.ts line 1 at column 0, b.js line 8 at column 10, a.ts line 3 at column 20; then a.ts line 2 on the next row.
  const map = { sources: ["a.ts", "b.js"], mappings: "AAAA,UCOA,UDLA;AADA" };
  const table = tableOf(
    map,
    (name) => `x/${name}`,
    (file) => file.endsWith(".ts"),
  );
  expect(placeIn(table, 1, 3)).toEqual({ file: "x/a.ts", line: 1 });
  expect(placeIn(table, 1, 12)).toEqual({ file: "x/b.js" });
  expect(placeIn(table, 1, 99)).toEqual({ file: "x/a.ts", line: 3 });
  expect(placeIn(table, 2, 0)).toEqual({ file: "x/a.ts", line: 2 });
});
