import { PawlError } from "../errors/errors.ts";
import { type Deps, uniqueToken } from "../ports/deps.ts";
import { persist } from "../retry/guarded-write.ts";
import type { Guard } from "../retry/guards.ts";
import { sha256 } from "../values/json.ts";

/** Up to here a value is kept in its entry. */
const INLINE_CHARS = 8_000;
/** In UTF-16 units, of which none takes more than three bytes: a part stays below every store's megabyte. */
const PART_CHARS = 300_000;

export function isInline(text: string): boolean {
  return text.length <= INLINE_CHARS;
}

export function splitText(text: string): string[] {
  const parts: string[] = [];
  for (let from = 0; from < text.length; ) {
    let to = Math.min(from + PART_CHARS, text.length);
    // Half of a surrogate pair is no text that a store could keep.
    if (to < text.length && /[\ud800-\udbff]/.test(text[to - 1] as string)) to--;
    parts.push(text.slice(from, to));
    from = to;
  }
  return parts;
}

/** Under a name that says what it holds: the head lists it, and its seal covers the name. */
export async function keepPart(
  deps: Deps,
  taskId: string,
  kind: "journal" | "value",
  text: string,
  guard: Guard,
): Promise<string> {
  const name = `${kind}-${uniqueToken()}-${partHash(text)}`;
  await persist(deps, taskId, guard, () => deps.store.putPart(taskId, name, text));
  return name;
}

export async function getPart(deps: Deps, taskId: string, name: string, guard: Guard): Promise<string> {
  const text = await persist(deps, taskId, guard, () => deps.store.getPart(taskId, name));
  if (text === undefined)
    throw new PawlError("journal_mismatch", `Part ${name} of task ${taskId}'s journal is gone`);
  const hash = partHashOf(name);
  if (hash !== undefined && hash !== partHash(text))
    throw new PawlError(
      "journal_altered",
      `Part ${name} of task ${taskId}'s journal does not hold what it was written with`,
    );
  return text;
}

const partHash = (text: string) => sha256(text).slice(0, 32);

/** Parts that were written before there were seals have no hash in their name. */
export function partHashOf(name: string): string | undefined {
  return /^(?:journal|value)-[0-9a-f-]{36}-([0-9a-f]{32})$/.exec(name)?.[1];
}
