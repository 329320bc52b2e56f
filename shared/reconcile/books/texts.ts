import type { TaskStore } from "../../ports/store.ts";

/** Where earlier versions kept these texts: as parts of an id that no task can have. */
const FORMER_PLACE = "__reports__";

/** A text of a report or of the books; one of an earlier version is read where that version put it. */
export async function readText(
  store: Pick<TaskStore, "getText" | "getPart">,
  name: string,
): Promise<string | undefined> {
  return (await store.getText(name)) ?? store.getPart(FORMER_PLACE, name);
}

/** Removes texts wherever they are kept. */
export async function removeTexts(
  store: Pick<TaskStore, "removeTexts" | "removeParts">,
  isOld: (name: string) => boolean,
): Promise<void> {
  await store.removeTexts(isOld);
  await store.removeParts(FORMER_PLACE, isOld);
}
