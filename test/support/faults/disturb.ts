import { PawlError } from "../../../shared/errors/errors.ts";
import type { TaskStore } from "../../../shared/ports/store.ts";

type Write = () => ReturnType<TaskStore["putHead"]>;

/** A store whose n-th write of a head is disturbed. */
export function disturbed(
  store: TaskStore,
  n: number,
  disturb: (write: Write) => ReturnType<Write>,
): TaskStore & { writes: number } {
  const wrapped = {
    ...store,
    writes: 0,
    putHead: (...args: Parameters<TaskStore["putHead"]>) => {
      const write = () => store.putHead(...args);
      return ++wrapped.writes === n ? disturb(write) : write();
    },
  };
  return wrapped;
}
export const away = () => new PawlError("store_unavailable", "no answer");
