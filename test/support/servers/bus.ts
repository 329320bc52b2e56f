import { type Wired, wire } from "../../../functions/wiring/wire.node.ts";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import type { Delivery } from "../../../shared/ports/bus.ts";
import type { Settings } from "../../../shared/settings/settings.ts";
import type { Queue } from "../../../shared/task/names.ts";
import { world } from "./stores.ts";

/** A bus with a queue's name of its own; nothing is created yet. */
export async function busOn(
  nats: LocalNats,
  given: Partial<Settings> = {},
): Promise<{ deps: Wired; queue: Queue }> {
  const { config } = world(nats, "nats-kv", given);
  const deps = await wire(config, () => {});
  const queue = { namespace: config.settings.namespace, agent: "a", lane: 0, generation: 1 };
  return { deps, queue };
}

export const message = (taskId: string, msgId = `submit:${taskId}`) => ({
  taskId,
  data: new TextEncoder().encode(`{"for":"${taskId}"}`),
  msgId,
  headers: { "Pawl-Dispatch": "1" },
});

/** What is delivered next: there is something, so it only takes its time. */
export async function next(deps: Pick<Wired, "bus">, queue: Queue): Promise<Delivery> {
  const delivery = await deps.bus.pull(queue, 30_000).delivery;
  if (!delivery) throw new Error("nothing was delivered");
  return delivery;
}
