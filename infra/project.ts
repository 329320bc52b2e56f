import { existsSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** Pawl's own folders: those of its repository, or what they were compiled to in an installed package. */
export const ROOT = fileURLToPath(new URL("..", import.meta.url));
/** Whether this is a package in somebody's node_modules, and not Pawl's repository. */
export const isInstalled = import.meta.url.endsWith(".js");
/** What Pawl's own files end in. */
export const ENDING = isInstalled ? ".js" : ".ts";
/** Where Pawl's package.json, licence and docs are. */
export const PACKAGE = isInstalled ? join(ROOT, "../..") : ROOT;

/**
 * The author's project: the nearest folder, from here up, that has agents/ beside its package.json. Where there is none,
 * it is this folder; for those who work on Pawl, Pawl's own.
 */
export function projectFolder(from = process.cwd()): string {
  for (let folder = resolve(from); ; folder = dirname(folder)) {
    if (existsSync(join(folder, "package.json")) && existsSync(join(folder, "agents"))) return folder;
    if (dirname(folder) === folder) return isInstalled ? resolve(from) : ROOT;
  }
}

/** Texts name Pawl's docs by their place in its repository; here they get the place where the reader has them. */
export function withDocs(text: string, from = process.cwd()): string {
  if (!isInstalled) return text;
  // Some package managers keep it elsewhere, and link to it by its name.
  const linked = join(projectFolder(from), "node_modules/pawl");
  const docs = relative(from, join(existsSync(linked) ? linked : PACKAGE, "docs"));
  return text.replaceAll(/(?<![\w/])docs(?=\/[\w-]+\.md)/g, docs);
}
