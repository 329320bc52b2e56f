import { readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { describe, expect, test } from "vitest";
import { readVariable, readVariables, rows, variables } from "../../shared/settings/variables.ts";

const root = join(import.meta.dirname, "../..");

function sources(...folders: string[]): { readonly file: string; readonly text: string }[] {
  return folders
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => ({ file: relative(root, path), text: readFileSync(path, "utf8") }));
}

/** Without the functions that benches measure Pawl against, which are not Pawl's. */
const code = sources("functions", "infra", "shared", "bench").filter(
  ({ file }) => !file.startsWith("bench/floors/"),
);
const names = (text: string) => text.match(/\b[A-Z][A-Z0-9]*(_[A-Z0-9]+)*\b/g) ?? [];
const found = (text: string, pattern: RegExp) =>
  [...text.matchAll(pattern)].flatMap(([, one]) => names(one ?? ""));

/** Straight from the environment. */
const rawReads = (text: string) => [
  ...found(text, /(?<!\[)\benv\.([A-Z]\w+)/g),
  ...found(text, /\benv\[\s*"(\w+)"/g),
  ...found(text, /\{([^{}]*)\}\s*=\s*(?:process\.)?env\b/g),
  ...found(text, /\{([^{}]*)\}\s*:\s*(?:Env|NodeJS\.ProcessEnv)\b/g),
];
/** By way of the table. */
const tableReads = (text: string) => [
  ...found(text, /\bgiven\.([A-Z]\w+)/g),
  ...found(text, /\breadVariable\([\w.]+,\s*"(\w+)"/g),
  ...found(text, /\{([^{}]*)\}\s*=\s*(?:given|readVariables\(\w+\)\.given)\b/g),
  ...found(text, /\{([^{}]*)\}\s*:\s*Given\b/g),
  ...found(text, /\bVariableName\[\]\s*=\s*\[([^\]]*)\]/g),
];

/** The system's own, and what is set for a package that reads it. */
const NOT_OURS = ["PATH", "HOME", "TMPDIR", "NODE_ENV", "METADATA_SERVER_DETECTION"];

describe("every variable is read by way of the table", () => {
  test("nothing but the demo's agent, which is an author's code, asks the environment itself", () => {
    const raw = code.flatMap(({ file, text }) =>
      rawReads(text)
        .filter((name) => !NOT_OURS.includes(name))
        .map((name) => `${file}: ${name}`),
    );
    expect(raw).toEqual(["infra/demo/agents/blog-post.ts: PAWL_DEMO_POSTS"]);
    const aliased = code.filter(({ text }) => /(const|let) \w+ = process\.env\b(?!\.)/.test(text));
    expect(aliased).toEqual([]);
  });

  test("each is read where the table says, and nowhere else", () => {
    const readerOf = (file: string) => {
      if (file.startsWith("functions/")) return "library";
      if (file.startsWith("infra/deploy/")) return "deploy";
      if (file.startsWith("infra/local/")) return "local";
      return /^infra\/(demo|drills)\//.test(file) ? "drill" : "command";
    };
    const readers = code
      .filter(({ file }) => !file.startsWith("shared/settings/"))
      .flatMap(({ file, text }) =>
        [...tableReads(text), ...rawReads(text)].map((name) => ({ name, reader: readerOf(file) })),
      )
      .filter(({ name }) => !NOT_OURS.includes(name));
    const actual = Object.groupBy(
      [...readers, ...rows.filter(([, { sets }]) => sets).map(([name]) => ({ name, reader: "library" }))],
      ({ name }) => name,
    );
    const sorted = (list: readonly string[]) => [...new Set(list)].sort().join(", ");
    expect(
      Object.fromEntries(
        Object.entries(actual).map(([name, list = []]) => [name, sorted(list.map((one) => one.reader))]),
      ),
    ).toEqual(
      Object.fromEntries(
        rows.map(([name, { readBy }]) => [
          name,
          sorted(readBy.map((reader) => (reader === "function" ? "library" : reader))),
        ]),
      ),
    );
  });

  test("what is read into the config, or into the settings, is used", () => {
    const config = "functions/wiring/config.ts";
    const ofConfig = code.find(({ file }) => file === config)?.text ?? "";
    const [, body = ""] = /export interface Config \{\n([\s\S]*?)\n\}/.exec(ofConfig) ?? [];
    const fields = [...body.matchAll(/^ {2}readonly (\w+)/gm)].map(([, name]) => name as string);
    const set = rows.flatMap(([, { sets }]) => sets ?? []);
    const isUsed = (name: string, where: RegExp) =>
      code.some(
        ({ file, text }) =>
          file !== config && where.test(file) && new RegExp(`(\\.|[{,]\\s*)${name}\\b(?!\\()`).test(text),
      );
    expect(fields.length).toBeGreaterThan(12);
    expect(fields.filter((name) => !isUsed(name, /^(functions|infra)\//))).toEqual([]);
    expect(set.filter((name) => !isUsed(name, /^shared\/(?!settings\/)/))).toEqual([]);
  });
});

describe("every row", () => {
  test.each(rows.filter(([, row]) => row.default ?? row.standIn))(
    "%s: its default and its stand-in are of its form",
    (name, row) => {
      for (const text of [row.default, row.standIn]) {
        if (text !== undefined) expect(readVariable({ [name]: text }, name)).toBeDefined();
      }
    },
  );

  test.each(rows.filter(([, { secret }]) => secret))(
    "%s is a secret: the checks of a deploy pass without it, and no message shows it",
    (name, row) => {
      const standIn = row.standIn ?? "x".repeat(32);
      expect(() => readVariable({ [name]: standIn }, name)).not.toThrow();
      for (const wrong of ["hunter2", "whsec_hunter2-hunter2-hunter2", "hunter2,hunter2"]) {
        const { problems } = readVariables({ [name]: wrong });
        expect(problems.join("\n")).not.toContain("hunter2");
      }
    },
  );

  test("says its form, its meaning in sentences, and who reads it", () => {
    for (const [name, { form, meaning, readBy }] of rows) {
      expect(meaning, name).toMatch(/^[A-Z][\s\S]*\.$/);
      expect(form.length * readBy.length, name).toBeGreaterThan(0);
    }
    expect(rows.length).toBe(Object.keys(variables).length);
  });
});

test("a value that is wrong is kept for whoever must compare it, and told to nobody before", () => {
  const { given, problems } = readVariables({ PAWL_RUN_SECRET: "short", PAWL_STORE: "nats-kv" });
  expect(given.PAWL_RUN_SECRET).toBe("short");
  expect(problems).toEqual([
    expect.stringMatching(/^NATS_URL is not set/),
    expect.stringMatching(/^PAWL_RUN_SECRET has 5 characters/),
  ]);
});
