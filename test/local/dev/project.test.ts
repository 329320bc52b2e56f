import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isDevVarsExposed, projectIn, readSources } from "../../../infra/local/dev/project.ts";
import { ROOT } from "../../../infra/project.ts";

test("both files are read as they are now; what can't be read is named; elsewhere the project is Pawl's own", () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-test-"));
  expect(projectIn(folder, "agents").folder).toBe(ROOT);
  writeFileSync(
    join(folder, "wrangler.toml"),
    'name = "pawl"\n[vars]\nA = "text"\nB = 3\nC = { d = true }\n',
  );
  const project = projectIn(folder, "agents");
  expect(project).toMatchObject({ folder, state: join(folder, ".pawl", "dev") });
  expect(readSources(project, {})).toEqual({
    vars: { A: "text", B: "3", C: '{"d":true}' },
    devVars: {},
    shell: {},
  });
  writeFileSync(join(folder, ".dev.vars"), "# mine\nTOKEN='a b'\nEMPTY=\n");
  expect(readSources(project, { X: "1" })).toMatchObject({
    devVars: { TOKEN: "a b", EMPTY: "" },
    shell: { X: "1" },
  });
  writeFileSync(join(folder, "wrangler.toml"), "name = \n");
  expect(() => readSources(project, {})).toThrow(/wrangler\.toml/);
});

test("secrets that git would take along are noticed", async () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-test-"));
  writeFileSync(join(folder, "wrangler.toml"), 'name = "pawl"\n');
  const project = projectIn(folder, "agents");
  expect(await isDevVarsExposed(project)).toBe(false);
  writeFileSync(join(folder, ".dev.vars"), "TOKEN=x\n");
  // No repository: nothing can be committed.
  expect(await isDevVarsExposed(project)).toBe(false);
  execFileSync("git", ["init", "--quiet"], { cwd: folder });
  expect(await isDevVarsExposed(project)).toBe(true);
  writeFileSync(join(folder, ".gitignore"), ".dev.vars*\n");
  expect(await isDevVarsExposed(project)).toBe(false);
  // Pawl's own ignores both.
  const ignored = readFileSync(join(ROOT, ".gitignore"), "utf8").split("\n");
  expect(ignored).toEqual(expect.arrayContaining(["/.pawl/", ".dev.vars*"]));
});
