import { type Dirent, readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";

/** Files by path, each with what changes when it does. */
export type Stamps = ReadonlyMap<string, string>;

const SOURCE = /^[^.].*\.(?:[cm]?[jt]sx?|json)$/;

export interface Watched {
  /** Every source file in these folders counts, and those of the folders inside. */
  readonly trees: readonly string[];
  /** Files beside them. */
  readonly files: readonly string[];
}

/** All folders in which something that matters may appear, change or go. */
export function foldersOf({ trees, files }: Watched): Set<string> {
  return new Set([...trees.flatMap(foldersIn), ...files.map((file) => dirname(file))]);
}

/** How all files are now. A file that was replaced by another has another number, whatever its date says. */
export function stampsOf(watched: Watched): Stamps {
  const found = watched.trees
    .flatMap(foldersIn)
    .flatMap((folder) =>
      entries(folder).flatMap((one) =>
        one.isFile() && SOURCE.test(one.name) ? [join(folder, one.name)] : [],
      ),
    );
  const stamps = new Map<string, string>();
  for (const file of [...found, ...watched.files]) {
    const stat = statSync(file, { throwIfNoEntry: false, bigint: true });
    if (stat) stamps.set(file, `${stat.mtimeNs} ${stat.size} ${stat.ino}`);
  }
  return stamps;
}

/** What came, changed or went. */
export function changedSince(before: Stamps, now: Stamps): string[] {
  const all = new Set([...before.keys(), ...now.keys()]);
  return [...all].filter((file) => before.get(file) !== now.get(file)).sort();
}

/** Adds files that were not looked at before, as they are now. */
export function withMore(stamps: Stamps, files: readonly string[]): Stamps {
  const more = stampsOf({ trees: [], files: files.filter((file) => !stamps.has(file)) });
  return new Map([...stamps, ...more]);
}

function foldersIn(folder: string): string[] {
  const inside = entries(folder).filter(
    (one) => one.isDirectory() && one.name !== "node_modules" && !one.name.startsWith("."),
  );
  return [folder, ...inside.flatMap(({ name }) => foldersIn(join(folder, name)))];
}

/** None of a folder that is gone. */
function entries(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}
