import { until } from "../../../infra/drills/until.ts";
import type { TaskStore } from "../../../shared/ports/store.ts";

export { patiently, until } from "../../../infra/drills/until.ts";

/** How long a test waits for anything. */
const LONG = 90_000;

/** Until every one of the tasks is completed. */
export async function allCompleted(store: TaskStore, ids: readonly string[], ms = LONG): Promise<void> {
  const unfinished = new Set(ids);
  const isDone = async () => {
    for (const id of unfinished) {
      if ((await store.get(id))?.task.state !== "completed") return false;
      unfinished.delete(id);
    }
    return true;
  };
  await until(`all of ${ids.length} tasks are completed`, isDone, ms);
}
