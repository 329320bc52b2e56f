import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { index, linked, pages, parts, strays } from "../../infra/pages.ts";
import { ROOT } from "../../infra/project.ts";
import { read } from "../support/pages.ts";

const DOCS = join(ROOT, "docs");

test("every page of docs/ has its line in the table of pages, and every line its page", () => {
  expect(strays(DOCS)).toEqual([]);
});

test("a page without a line, and a line without a page, are named with what to do", () => {
  const folder = mkdtempSync(join(tmpdir(), "pawl-pages-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "decisions"));
  for (const file of ["README.md", "here.md", "decisions/9-new.md"])
    writeFileSync(join(folder, file), "# A page\n");
  expect(strays(folder, ["here.md", "gone.md"])).toEqual([
    "docs/decisions/9-new.md has no line in the table of pages: add it to infra/pages.ts, where a reader needs it",
    "infra/pages.ts names docs/gone.md, which is not there",
  ]);
});

test("the parts come in their order", () => {
  const order = pages.map(([, part]) => parts.indexOf(part));
  expect(order).toEqual([...order].sort((a, b) => a - b));
});

test("one can go through all pages from the first to the last, and back", () => {
  const beside = (file: string) =>
    /<!-- begin beside -->\n(.*)\n<!-- end beside -->\n$/.exec(read(`docs/${file}`))?.[1];
  const resolve = (file: string, link = "") => new URL(link, `https://docs.test/${file}`).pathname.slice(1);
  const order = pages.map(([file]) => file);
  const after = order.map((file) => /\[[^\]]+\]\(([^)]+)\) →$/.exec(beside(file) ?? "")?.[1]);
  const before = order.map((file) => /^← \[[^\]]+\]\(([^)]+)\)/.exec(beside(file) ?? "")?.[1]);
  expect(after.slice(0, -1).map((link, i) => resolve(order[i] as string, link))).toEqual(order.slice(1));
  expect(before.slice(1).map((link, i) => resolve(order[i + 1] as string, link))).toEqual(order.slice(0, -1));
  expect([before[0], after.at(-1)]).toEqual([undefined, undefined]);
  for (const [file] of pages) expect(index(DOCS)).toContain(`](${file})`);
});

test("links are put once, however often, and leave the rest of a page as it was", () => {
  const text = "# Deploying\n\nFirst.\n\n## More\n\nLast.\n";
  const once = linked(DOCS, "deploy.md", text);
  expect(once).toMatch(
    /^# Deploying\n\n<!-- begin parts -->\n.*\*\*Deploy\*\*.*\n<!-- end parts -->\n\nFirst\./,
  );
  expect(linked(DOCS, "deploy.md", once)).toBe(once);
  expect(once.replaceAll(/<!-- begin (\w+) -->[\s\S]*?<!-- end \1 -->\n\n?/g, "").trimEnd()).toBe(
    text.trimEnd(),
  );
});
