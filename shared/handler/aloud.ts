import { spokenIn, type Turn } from "../ports/model.ts";
import type { Scene } from "./scene.ts";

/** How much of its text a turn has said until now. */
type Said = () => string;

/**
 * Lets whoever listens read a turn while it runs: as it will be stored, and only while the lease is held, so that a process
 * that was frozen tells nothing of its own when it wakes.
 */
export async function aloud(
  { deps, task, signal }: Pick<Scene, "deps" | "task" | "signal">,
  key: string,
  ask: (begun?: (said: Said) => void) => Promise<Turn>,
): Promise<Turn> {
  const { tells } = deps;
  if (!tells) return ask();
  let over: ((whole?: string) => void) | undefined;
  try {
    const turn = await ask((said) => {
      over = tells.say(task, key, () => (signal.aborted ? undefined : said()));
    });
    // Before it is stored: what comes after that is told by the journal.
    if (!signal.aborted) over?.(spokenIn(turn.content));
    return turn;
  } finally {
    over?.();
  }
}
