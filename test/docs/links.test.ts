import { existsSync, globSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import { describe, expect, test } from "vitest";
import { ROOT } from "../../infra/project.ts";
import { markdownFiles, read } from "../support/pages.ts";

/** As GitHub makes anchors of titles. */
function anchorsOf(text: string): Set<string> {
  const seen = new Map<string, number>();
  const anchors = [...withoutCode(text).matchAll(/^#{1,6} (.+?) *$/gm)].map(([, title = ""]) => {
    const plain = title.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").toLowerCase();
    const anchor = plain.replaceAll(/[^\p{L}\p{N}\s_-]/gu, "").replaceAll(" ", "-");
    const before = seen.get(anchor) ?? 0;
    seen.set(anchor, before + 1);
    return before === 0 ? anchor : `${anchor}-${before}`;
  });
  return new Set(anchors);
}

/** What is in a block of code is no title and no link. */
const withoutCode = (text: string) => text.replaceAll(/^ *```[\s\S]*?^ *```$/gm, "");

/** What is wrong with a link of a page. */
function wrongWith(page: string, target: string): string | undefined {
  const [path = "", anchor] = target.split("#");
  const file = path === "" ? page : normalize(join(dirname(page), path));
  if (file.startsWith("..")) return `${page}: ${target} leads out of the project`;
  if (!existsSync(join(ROOT, file))) return `${page}: ${target} leads to no file`;
  if (anchor === undefined || !file.endsWith(".md")) return undefined;
  return anchorsOf(read(file)).has(anchor) ? undefined : `${page}: ${target} leads to no title of ${file}`;
}

const linksOf = (page: string) =>
  [...withoutCode(read(page)).matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target as string);

describe("every link", () => {
  test("between pages leads to a file, and to a title of it", () => {
    const pages = markdownFiles();
    expect(pages).toEqual(expect.arrayContaining(["README.md", "docs/api.md", "shared/client/README.md"]));
    let checked = 0;
    const wrong = pages.flatMap((page) =>
      linksOf(page)
        .filter((target) => !/^[a-z]+:/.test(target))
        .map((target) => {
          checked++;
          return wrongWith(page, target);
        }),
    );
    expect(wrong.filter((one) => one !== undefined)).toEqual([]);
    expect(checked).toBeGreaterThan(200);
  });

  test("to elsewhere is one of https", () => {
    const wrong = markdownFiles().flatMap((page) =>
      linksOf(page).filter(
        (target) => /^[a-z]+:/.test(target) && !/^https:\/\/[\w.-]+\.\w+\//.test(`${target}/`),
      ),
    );
    expect(wrong).toEqual([]);
  });

  test("that errors, commands and comments name leads somewhere too", () => {
    const sources = globSync("{agents,functions,infra,shared}/**/*.{ts,mjs}", { cwd: ROOT });
    let checked = 0;
    const wrong = sources.flatMap((source) =>
      [...read(source).matchAll(/\bdocs\/[\w./-]+\.md(?:#[\w-]+)?/g)].map(([target]) => {
        checked++;
        return wrongWith("README.md", target)?.replace("README.md", source);
      }),
    );
    expect(wrong.filter((one) => one !== undefined)).toEqual([]);
    expect(checked).toBeGreaterThan(20);
  });
});

test("a wrong link is found, whatever is wrong with it", () => {
  expect(wrongWith("docs/api.md", "nowhere.md")).toMatch(/leads to no file/);
  expect(wrongWith("docs/api.md", "errors.md#no_such_code")).toMatch(/leads to no title of docs\/errors.md/);
  expect(wrongWith("docs/api.md", "../../etc/passwd")).toMatch(/out of the project/);
  expect(wrongWith("docs/api.md", "#agents-and-metrics")).toBeUndefined();
  expect([...anchorsOf("# `a`, b: c!\n## X\n### X\n```sh\n# no title\n```\n")]).toEqual([
    "a-b-c",
    "x",
    "x-1",
  ]);
});
