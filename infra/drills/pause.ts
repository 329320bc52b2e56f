import type { Bus, Delivery } from "../../shared/ports/bus.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
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
