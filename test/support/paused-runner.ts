/**
 * `pawl run recorder`, with the ports wrapped so that it stops dead at one boundary and says so: the test then does to
 * it what it came for. The journey itself has no hooks.
 */
import { configFrom } from "../../functions/config.ts";
import { wire } from "../../functions/wire.node.ts";
import { loadAgent } from "../../infra/agents.ts";
import { logger } from "../../infra/cli/output.ts";
import { serve } from "../../shared/journey/serve.ts";
import type { Bus, Delivery } from "../../shared/ports/bus.ts";
import type { TaskStore } from "../../shared/ports/store.ts";
import type { Task } from "../../shared/task/document.ts";

const boundary = process.env.TEST_PAUSE_AT ?? "";
let passed = false;

/** Once: a runner that is frozen here and woken later goes on. */
async function at(name: string): Promise<void> {
  if (name !== boundary || passed) return;
  passed = true;
  console.log(`AT ${name}`);
  if (process.env.TEST_RESUME) await new Promise((resolve) => process.once("SIGUSR2", resolve));
  else await new Promise(() => setInterval(() => {}, 1000));
}

function pausingStore(store: TaskStore): TaskStore {
  const around = async <T>(task: Task, write: () => Promise<T>): Promise<T> => {
    await at(`before:${task.state}`);
    const result = await write();
    await at(`after:${task.state}`);
    return result;
  };
  return {
    ...store,
    create: (task) => around(task, () => store.create(task)),
    replace: (task, seen) => around(task, () => store.replace(task, seen)),
  };
}

function pausingBus(bus: Bus): Bus {
  const pausing = (delivery: Delivery): Delivery => ({
    ...delivery,
    ack: async () => {
      await at("before:ack");
      await delivery.ack();
      await at("after:ack");
    },
  });
  return {
    ...bus,
    pull: (queue, waitMs) => {
      const pull = bus.pull(queue, waitMs);
      const delivery = pull.delivery.then(async (received) => {
        if (received) await at("received");
        return received && pausing(received);
      });
      return { ...pull, delivery };
    },
  };
}

const deps = await wire(configFrom(process.env), logger(true));
const agent = await loadAgent("recorder", process.env.PAWL_AGENTS_DIR as string);
const stop = new AbortController();
process.on("SIGTERM", () => stop.abort(new Error("told to stop")));
const paused = { ...deps, store: pausingStore(deps.store), bus: pausingBus(deps.bus) };
await serve("recorder", agent, "forever", stop.signal, paused);
await deps[Symbol.asyncDispose]();
