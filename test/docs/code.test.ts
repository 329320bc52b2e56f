import { execFile } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { transform } from "esbuild";
import { expect, test } from "vitest";
import { ROOT } from "../../infra/project.ts";
import { type Block, blocksOf, markdownFiles } from "../support/pages.ts";
import { tempAgents } from "../support/temp-agents.ts";

const blocks = markdownFiles().flatMap(blocksOf);
const inLanguage = (...names: string[]) => blocks.filter(({ language }) => names.includes(language));

/** Checked below, or in commands.test.ts; a diagram by who looks at it, and Prometheus's own settings by promtool, by hand. */
const CHECKED = ["ts", "js", "json", "sh", "mermaid", "yaml"];

/** The doors by the names that the installed package has for them. */
const DOORS = { pawl: "agent", "pawl/testing": "testing", "pawl/client": "client" };

test("every block of code is of a language that is checked", () => {
  const others = blocks.filter(({ language }) => !CHECKED.includes(language));
  expect(others.map(({ where, language }) => `${where} ${language}`)).toEqual([]);
  expect(blocks.length).toBeGreaterThan(50);
  // They name a file of ours.
  const settings = inLanguage("yaml").map(({ code }) => /rule_files: \["(.+)"\]/.exec(code)?.[1] ?? "");
  for (const file of settings) expect(existsSync(join(ROOT, "infra/monitoring", file)), file).toBe(true);
});

/** Where a block's first line says that it belongs; else a file of its own. */
function fileOf({ code, where }: Block): string {
  const [, named] = /^\/\/ ([\w./-]+\.ts)\b/.exec(code) ?? [];
  return named ?? `blocks/${where.replaceAll(/[^\w]/g, "-")}.ts`;
}

/** What the compiler says of all these, in one project, beside Pawl's own doors. */
async function compiled(all: readonly Block[], folder: string): Promise<string> {
  const paths = Object.fromEntries(
    Object.entries(DOORS).map(([name, door]) => [name, [`../../shared/${door}.ts`]]),
  );
  const config = {
    extends: "../../tsconfig.json",
    compilerOptions: { paths, noUnusedLocals: false, noUnusedParameters: false },
    include: ["**/*.ts"],
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
  for (const block of all) {
    const file = join(folder, fileOf(block));
    mkdirSync(dirname(file), { recursive: true });
    const doors = relative(dirname(file), join(ROOT, "shared"));
    const code = block.code.replaceAll(/(?:\.\.\/)+shared\//g, `${doors}/`);
    // Without an import or export it would be no module, and its names everybody's.
    writeFileSync(file, `${code}\nexport {};\n`);
  }
  const run = promisify(execFile)(join(ROOT, "node_modules/.bin/tsc"), ["-p", folder]);
  return run.then(
    () => "",
    (error: { stdout: string }) => error.stdout,
  );
}

test("every block of TypeScript compiles as it stands, against the real doors", async () => {
  const all = inLanguage("ts");
  const files = new Map<string, Block>();
  for (const block of all) {
    const before = files.get(fileOf(block));
    if (before) expect(block.code, `${block.where} and ${before.where} are the same file`).toBe(before.code);
    files.set(fileOf(block), block);
  }
  expect(files.size).toBeGreaterThan(15);
  const wrong: Block = {
    where: "wrong:1",
    file: "wrong",
    language: "ts",
    code: 'import { createClient } from "pawl/client";\ncreateClient({ adress: "x" });\n',
  };
  // One more shows that the compiler looks.
  const said = await compiled([...files.values(), wrong], tempAgents());
  expect(
    said
      .trim()
      .split("\n")
      .filter((line) => !line.startsWith("npm ")),
  ).toEqual([expect.stringMatching(/blocks\/wrong-1\.ts.*'adress' does not exist/)]);
});

test("the pages import Pawl by its package's names: its folders are for who works on it", () => {
  const own = inLanguage("ts").filter(
    ({ file, code }) => file.startsWith("docs/") && code.includes("shared/"),
  );
  expect(own.map(({ where }) => where)).toEqual([]);
});

test("every block of JavaScript and JSON is one", async () => {
  for (const { where, code } of inLanguage("js"))
    await expect(transform(code, { format: "esm" }), where).resolves.toBeDefined();
  for (const { where, code } of inLanguage("json")) expect(() => JSON.parse(code), where).not.toThrow();
  expect(inLanguage("json").length).toBeGreaterThan(1);
});
