import type { Deps } from "../../../shared/ports/deps.ts";
import type { Queue } from "../../../shared/task/names.ts";

/**
 * The same, with all clocks ahead of the real time: this machine's and the servers'. Nothing else is: whoever moves only
 * one of them has a clock that is wrong.
 */
export function later<D extends Pick<Deps, "clock" | "bus" | "store">>(
  deps: D,
  ms: number | (() => number),
): D {
  const { clock, bus, store } = deps;
  const now = () => Date.now() + (typeof ms === "number" ? ms : ms());
  return {
    ...deps,
    clock: { ...clock, now },
    bus: { ...bus, inspect: async (queue: Queue) => ({ ...(await bus.inspect(queue)), now: now() }) },
    store: { ...store, position: async () => ({ ...(await store.position()), now: now() }) },
  };
}

/** Time as the test says it, from now on: what is due in an hour is due when the test lets an hour pass. */
export function travel(deps: Pick<Deps, "clock" | "bus" | "store">): (ms: number) => void {
  let ahead = 0;
  Object.assign(
    deps,
    later(deps, () => ahead),
  );
  return (ms) => {
    ahead += ms;
  };
}
