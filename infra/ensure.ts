import type { NatsConnection } from "@nats-io/nats-core";
import { ensureAgentBucket } from "../shared/adapters/kv/open.ts";
import { ensureQueue, queueOf } from "../shared/dispatch/dispatch.ts";
import type { Deps } from "../shared/ports/deps.ts";
import type { StoreKind } from "../shared/settings/servers.ts";

/** Makes sure of what an agent's function needs to be there, queues and bucket: it may make none of it itself. */
export async function ensureAgent(
  deps: Deps & { readonly nc: NatsConnection },
  store: StoreKind,
  { name, lanes }: { readonly name: string; readonly lanes: number },
): Promise<readonly string[]> {
  const changes: string[] = [];
  for (let lane = 0; lane < lanes; lane++)
    changes.push(...(await ensureQueue(deps, queueOf(deps, { agent: name, lane }), "correct")));
  if (store === "nats-kv") await ensureAgentBucket(deps.nc, deps.settings, name);
  return changes;
}
