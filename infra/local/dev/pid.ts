import { execFileSync } from "node:child_process";
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";

/**
 * Puts this process's number into the file, unless another one that lives is there: false then. A link is made by one of
 * two that try at once. What a dead process left is moved aside, and looked at again there: by then it may be another's.
 */
export function holdPid(file: string): boolean {
  const [mine, aside] = [`${file}.${process.pid}`, `${file}.${process.pid}.old`];
  writeFileSync(mine, String(process.pid));
  try {
    for (;;) {
      if (did(() => linkSync(mine, file), "EEXIST")) return true;
      const holder = read(file);
      if (isDev(holder)) return false;
      if (!did(() => renameSync(file, aside), "ENOENT")) continue;
      if (read(aside) === holder) continue;
      did(() => linkSync(aside, file), "EEXIST");
      return false;
    }
  } finally {
    for (const one of [mine, aside]) rmSync(one, { force: true });
  }
}

/** False where it failed as expected. */
function did(work: () => void, expected: string): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === expected) return false;
    throw error;
  }
}

/** Its number may be another program's by now. */
function isDev(pid: string): boolean {
  if (!/^\d+$/.test(pid) || Number(pid) === process.pid) return false;
  try {
    const command = execFileSync("ps", ["-o", "command=", "-p", pid], { encoding: "utf8" });
    return /\bnode\b|pawl/.test(command);
  } catch {
    return false;
  }
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8").trim();
  } catch {
    return "";
  }
}
