import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "../../infra/project.ts";

/** Every page of ours that people read, by its path from the project's folder. */
export function markdownFiles(): string[] {
  const patterns = ["*.md", "docs/**/*.md", "{agents,bench,functions,infra,shared,test}/**/*.md"];
  return globSync(patterns, { cwd: ROOT, exclude: (name) => name.includes("node_modules") }).toSorted();
}

export const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

export interface Block {
  /** Where it stands: "docs/api.md:32". */
  readonly where: string;
  readonly file: string;
  readonly language: string;
  readonly code: string;
}

/** The blocks of code of a page, but for those that are printed from code. */
export function blocksOf(file: string): Block[] {
  const blank = (text: string) => text.replaceAll(/[^\n]/g, "");
  const text = read(file).replaceAll(/<!-- begin (\w+) -->[\s\S]*?<!-- end \1 -->/g, blank);
  return [...text.matchAll(/^( *)```(\w+)\n([\s\S]*?)^ *```$/gm)].map(
    ([, indent = "", language = "", code = "", ..._], i, all) => {
      const { index = 0 } = all[i] as RegExpExecArray;
      const where = `${file}:${text.slice(0, index).split("\n").length}`;
      return { where, file, language, code: code.replaceAll(new RegExp(`^${indent}`, "gm"), "") };
    },
  );
}
