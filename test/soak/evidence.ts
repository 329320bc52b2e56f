import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Wired } from "../../functions/wiring/wire.node.ts";
import { ROOT } from "../../infra/project.ts";
import { readJournal } from "../../shared/journal/journal.ts";
import type { Result } from "./result.ts";

/** It will not be seen again: notes, logs, faults, and the documents of the tasks that something is odd about. */
export async function keepEvidence(deps: Wired, folder: string, result: Result): Promise<string> {
  const name = `soak-${result.regime}-${result.seed}-${result.begun}`;
  const kept = join(ROOT, "dist", name.replaceAll(/[^\w-]/g, "_"));
  await mkdir(kept, { recursive: true });
  await cp(folder, kept, { recursive: true, filter: (path) => !path.includes("compiled") });
  await writeFile(join(kept, "result.json"), JSON.stringify(result, null, 2));
  const ids = new Set([...result.judgement.wrong.map(({ id }) => id), result.longestRecovery.id]);
  for (const id of ids) {
    const task = (await deps.store.get(id))?.task;
    const journal = await readJournal(deps, id, () => {});
    await writeFile(join(kept, `${id}.json`), JSON.stringify({ task, journal }, null, 2));
  }
  return kept;
}
