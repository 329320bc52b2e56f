import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { messageOf, PawlError } from "../../shared/errors/errors.ts";
import type { Manifest } from "./files.ts";

/** What became of a project's files. Nothing that was there is another now, but package.json where it says so. */
export interface Written {
  readonly wrote: readonly string[];
  /** Were there, and are as they were. */
  readonly kept: readonly string[];
  /** What a package.json that was there has been given, as scripts.dev. */
  readonly added: readonly string[];
}

export async function writeFiles(folder: string, files: Readonly<Record<string, string>>): Promise<Written> {
  const [wrote, kept, added]: [string[], string[], string[]] = [[], [], []];
  // First: it may be one that nothing can be added to.
  const manifest = join(folder, "package.json");
  const merged = existsSync(manifest)
    ? mergedManifest(await readFile(manifest, "utf8"), JSON.parse(files["package.json"] ?? "{}"), manifest)
    : undefined;
  for (const [path, text] of Object.entries(files)) {
    const file = join(folder, path);
    await mkdir(dirname(file), { recursive: true });
    if (path === "package.json" && merged) {
      added.push(...merged.added);
      if (merged.added.length > 0) await writeFile(file, merged.text);
      else kept.push(path);
      continue;
    }
    try {
      await writeFile(file, text, { flag: "wx" });
      wrote.push(path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
      kept.push(path);
    }
  }
  return { wrote, kept, added };
}

const MERGED = ["scripts", "dependencies", "devDependencies", "allowScripts", "overrides"] as const;

/** With what is missing of ours: what it says itself stays. */
function mergedManifest(
  text: string,
  ours: Manifest,
  path: string,
): { text: string; added: readonly string[] } {
  const theirs = parsed(text, path);
  if (theirs.type === "commonjs")
    throw new PawlError(
      "usage",
      `${path} says "type": "commonjs", and agents are ES modules. Make it "module", or begin in a folder of its own`,
    );
  const added: string[] = [];
  const result: Record<string, unknown> = { ...theirs };
  if (theirs.type === undefined) {
    result.type = "module";
    added.push("type");
  }
  for (const field of MERGED) {
    const [before, wanted] = [theirs[field] ?? {}, ours[field] ?? {}] as Record<string, string>[];
    const missing = Object.entries(wanted ?? {}).filter(([name]) => !isThere(theirs, field, name));
    if (missing.length === 0) continue;
    result[field] = { ...before, ...Object.fromEntries(missing) };
    added.push(...missing.map(([name]) => `${field}.${name}`));
  }
  const indent = /^([ \t]+)"/m.exec(text)?.[1] ?? 2;
  return { text: `${JSON.stringify(result, null, indent)}\n`, added };
}

/** A package that is a dependency of one kind need not be one of the other. */
function isThere(manifest: Manifest, field: string, name: string): boolean {
  const fields = /ependencies$/.test(field) ? ["dependencies", "devDependencies"] : [field];
  return fields.some((one) => (manifest[one] as Record<string, string> | undefined)?.[name] !== undefined);
}

function parsed(text: string, path: string): Manifest {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Manifest;
  } catch (error) {
    throw new PawlError("usage", `${path} can't be read: ${messageOf(error)}`, { cause: error });
  }
  throw new PawlError("usage", `${path} holds no object. Mend it, or begin in a folder of its own`);
}
