import { readJournal } from "../journal/journal.ts";
import { getPart } from "../journal/parts.ts";
import type { Deps } from "../ports/deps.ts";
import type { Turn } from "../ports/model.ts";
import { answerNumber } from "./scripted-model.ts";

/** Which answers of a script the journal has, by their numbers: those are replayed, and not asked for again. */
export async function answersStored(deps: Deps, id: string): Promise<ReadonlySet<number>> {
  const stored = new Set<number>();
  for (const entry of (await readJournal(deps, id, () => {}))?.entries ?? []) {
    if (entry.kind !== "receipt" || entry.cost === undefined) continue;
    const parts = entry.parts?.map((name) => getPart(deps, id, name, () => {}));
    const turn = parts ? JSON.parse((await Promise.all(parts)).join("")) : entry.value;
    const number = answerNumber((turn as Partial<Turn>).requestId);
    if (number !== undefined) stored.add(number);
  }
  return stored;
}
