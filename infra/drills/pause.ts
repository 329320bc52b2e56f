import type { Bus, Delivery } from "../../shared/ports/bus.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import type { Env } from "../../shared/settings/variable.ts";
import { readVariable } from "../../shared/settings/variables.ts";
import type { Task } from "../../shared/task/document.ts";

/**
 * Where a runner can be stopped dead, to do to it there what a drill is about. The ports are wrapped; the journey has
 * no hooks, and does not know.
 */
export type Boundary = "received" | `${"before" | "after"}:${Task["state"] | "ack"}`;

export interface Pausing {
  store(store: TaskStore): TaskStore;
  bus(bus: Bus): Bus;
}

/** `at` is called at every boundary, and holds the runner there for as long as it likes. */
export function pausing(at: (boundary: Boundary) => Promise<void>): Pausing {
  const around = async <T>(task: Task, write: () => Promise<T>): Promise<T> => {
    await at(`before:${task.state}`);
    const result = await write();
    await at(`after:${task.state}`);
    return result;
  };
  const deliver = (delivery: Delivery): Delivery => ({
    ...delivery,
    ack: async () => {
      await at("before:ack");
      await delivery.ack();
      await at("after:ack");
    },
  });
  return {
    store: (store) => ({
      ...store,
      create: (task) => around(task, () => store.create(task)),
      replace: (task, seen) => around(task, () => store.replace(task, seen)),
    }),
    bus: (bus) => ({
      ...bus,
      pull: (queue, waitMs) => {
        const pull = bus.pull(queue, waitMs);
        const delivery = pull.delivery.then(async (received) => {
          if (received) await at("received");
          return received && deliver(received);
        });
        return { ...pull, delivery };
      },
    }),
  };
}

/** As PAWL_DRILL_PAUSE_AT and PAWL_DRILL_RESUME say: stops dead at each of these boundaries, once. */
export function pauseFrom(env: Env): Pausing {
  const left = new Set(readVariable(env, "PAWL_DRILL_PAUSE_AT"));
  const isResumed = readVariable(env, "PAWL_DRILL_RESUME") !== undefined;
  return pausing(async (boundary) => {
    if (!left.delete(boundary)) return;
    const resumed = new Promise((resolve) => process.once("SIGUSR2", resolve));
    console.log(`AT ${boundary}`);
    if (isResumed) await resumed;
    else await new Promise(() => setInterval(() => {}, 1000));
  });
}
