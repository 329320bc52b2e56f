import type { TaskStore } from "../../shared/ports/store.ts";

/** Asks until it is so. The last resort where nothing signals: for what other processes write. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined | false>,
  ms = 30_000,
): Promise<T> {
  const end = Date.now() + ms;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (Date.now() > end) throw new Error(`not within ${ms} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** Until every one of the tasks is completed. */
export async function allCompleted(store: TaskStore, ids: readonly string[], ms: number): Promise<void> {
  const unfinished = new Set(ids);
  const isDone = async () => {
    for (const id of unfinished) {
      const found = await store.get(id).catch(() => undefined);
      if (found?.task.state !== "completed") return false;
      unfinished.delete(id);
    }
    return true;
  };
  await until(`all of ${ids.length} tasks are completed`, isDone, ms);
}
