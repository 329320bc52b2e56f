import { readFile, writeFile } from "node:fs/promises";
import { DASHBOARD, dashboardText } from "./dashboard.ts";
import { RULES, rulesText } from "./rules.ts";

const files: Readonly<Record<string, () => string>> = { [RULES]: rulesText, [DASHBOARD]: dashboardText };

/** Those that are out of date; written anew, unless they are only to be looked at. */
export async function staleFiles(isCheck: boolean): Promise<string[]> {
  const stale: string[] = [];
  for (const [file, print] of Object.entries(files)) {
    const [before, after] = [await readFile(file, "utf8").catch(() => undefined), print()];
    if (after === before) continue;
    stale.push(file);
    if (!isCheck) await writeFile(file, after);
  }
  return stale;
}
