import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll } from "vitest";
import { ROOT } from "../../infra/project.ts";

/** How agents in such a folder import Pawl. */
export const SHARED = "../../shared";

/** A folder for agents of a test file's own: inside the project, where packages are found, and out of its checks' way. */
export function tempAgents(): string {
  mkdirSync(join(ROOT, "dist"), { recursive: true });
  const folder = mkdtempSync(join(ROOT, "dist", "agents-"));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** The files of the author's guide and of the page on tests, by their name in agents/. */
export function authorsCode(): Record<string, string> {
  const pages = ["author", "testing"].map((page) => readFileSync(join(ROOT, `docs/${page}.md`), "utf8"));
  const blocks = pages.join("\n").matchAll(/```ts\n\/\/ agents\/([\w./-]+)\.ts\n([\s\S]*?)```/g);
  return Object.fromEntries([...blocks].map(([, name, code]) => [name, code] as [string, string]));
}

/** As files in a folder of a test's own. */
export function writeAuthorsCode(folder: string): void {
  for (const [name, code] of Object.entries(authorsCode())) {
    const file = join(folder, `${name}.ts`);
    mkdirSync(dirname(file), { recursive: true });
    // Of code that agents share the folder is one deeper.
    const shared = name.startsWith("lib/") ? `../${SHARED}` : SHARED;
    const ours = code
      .replaceAll('"pawl/testing"', `"${shared}/testing.ts"`)
      .replaceAll('"pawl"', `"${shared}/agent.ts"`);
    writeFileSync(file, ours);
  }
}
