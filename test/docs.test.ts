import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { agentNames, loadAgent } from "../infra/agents.ts";
import { errorKinds } from "../shared/errors/errors.ts";
import { variables } from "../shared/settings/variables.ts";
import { authorsCode, tempAgents, writeAuthorsCode } from "./support/temp-agents.ts";

const root = join(import.meta.dirname, "..");
const folder = tempAgents();
const read = (file: string) => readFileSync(join(root, file), "utf8");

test("the README's agent is the file that it says it is", () => {
  const [, name, code] =
    /```ts\n\/\/ (agents\/[\w-]+\.ts)[^\n]*\n([\s\S]*?)```/.exec(read("README.md")) ?? [];
  expect(read(name as string).replace("../shared/agent.ts", "pawl")).toBe(code);
});

test("every agent in the author's guide is one", async () => {
  const blocks = authorsCode();
  writeAuthorsCode(folder);
  const names = Object.keys(blocks).filter((name) => !/\.(test|model)$|^lib\//.test(name));
  expect(await agentNames(folder)).toEqual(names.sort());
  for (const name of names) await loadAgent(name, folder);
  expect(await loadAgent("greet", folder)).toMatchObject({
    limits: { timeout: 120_000, attempts: 5, lanes: 1, order: "loose" },
  });
  expect(names.length).toBeGreaterThan(6);
});

test("every script of package.json is in the README", () => {
  const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
  const missing = Object.keys(scripts).filter(
    (name) => !name.startsWith("pre") && !new RegExp(`npm (run )?${name}\\b`).test(read("README.md")),
  );
  expect(missing).toEqual([]);
});

test("every file that the maintainer's pages name is there", () => {
  for (const page of ["CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md"]) {
    const named = [...read(page).matchAll(/`([\w./-]+\/[\w.-]+\.ts)`/g)].map((match) => match[1] as string);
    const gone = named.filter(
      (name) => !["", "shared"].some((folder) => existsSync(join(root, folder, name))),
    );
    expect(gone, page).toEqual([]);
  }
});

test("the glossary has at most 25 words, in their order", () => {
  const [, glossary = ""] = read("docs/architecture.md").split("## Glossary");
  const words = [...glossary.matchAll(/^\| ([a-z][^|]*?) \|/gm)].map((match) => match[1] as string).slice(1);
  expect(words.length).toBeLessThanOrEqual(25);
  expect(words.length).toBeGreaterThan(20);
  expect(words).toEqual([...words].sort());
});

test("every error code and every setting has its place in the docs", () => {
  for (const code of Object.keys(errorKinds)) expect(read("docs/errors.md")).toContain(`\n## ${code}\n`);
  for (const name of Object.keys(variables)) expect(read("docs/settings.md")).toContain(`\n| \`${name}\` |`);
});

test("every file in agents/ is an agent, named by its path", async () => {
  const names = await agentNames(join(root, "agents"));
  expect(names).toContain("echo");
  for (const name of names)
    expect(await loadAgent(name, join(root, "agents"))).toMatchObject({ kind: "pawl.agent" });
});

test("CI runs the README's test command, and nothing else", () => {
  expect(read("README.md")).toContain("npm ci && npm test");
  expect(read(".ci/run").trim().split("\n").at(-1)).toBe("npm ci && npm test");
});

test("no generated part of the docs is out of date", () => {
  expect(() => execFileSync(process.execPath, ["infra/docs.ts", "--check"], { cwd: root })).not.toThrow();
});
