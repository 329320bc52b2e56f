import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/nats-core";
import type { TaskStore } from "../../ports/store.ts";
import type { Settings } from "../../settings/settings.ts";
import { agentBucket, agentOfBucket } from "../../task/names.ts";
import type { BucketStore } from "./bucket-store.ts";
import { natsKv } from "./nats-kv.ts";
import { separateStore } from "./separate.ts";

/** Another process may have made an agent's bucket: which there are is asked again after so much time. */
const KNOWN_FOR = 2_000;

/**
 * The store of this deployment, as its `isolation` says. `confinedTo`: the agents that this identity reaches, its own first;
 * none where it reaches all.
 */
export async function openNatsKv(
  nc: NatsConnection,
  settings: Settings,
  confinedTo?: readonly string[],
): Promise<TaskStore> {
  const opened = new Map<string, Promise<BucketStore>>();
  const open = (agent: string) => {
    const place = { name: agentBucket(settings, agent), agent, isConfined: confinedTo !== undefined };
    const there = opened.get(agent) ?? natsKv(nc, settings, place);
    opened.set(agent, there);
    // Asked for again, it may be there.
    there.catch(() => opened.delete(agent));
    return there;
  };
  if (confinedTo) {
    const own = await open(confinedTo[0] as string);
    return separateStore({ own, open, agents: async () => confinedTo }, settings.retention);
  }
  const shared = await natsKv(nc, settings);
  if (settings.isolation === "shared") return shared;
  const jsm = await jetstreamManager(nc, { timeout: settings.requestTimeout, checkAPI: false });
  let known: { readonly at: number; readonly names: Promise<string[]> } | undefined;
  const list = () =>
    shared.bucket.ask("Listing agents' buckets", async () => {
      const found: string[] = [];
      for await (const stream of jsm.streams.names("$KV.*.>"))
        found.push(...[agentOfBucket(stream, settings) ?? []].flat());
      return found.sort();
    });
  const agents = async () => {
    if (!known || performance.now() - known.at > KNOWN_FOR) known = { at: performance.now(), names: list() };
    const { names } = known;
    names.catch(() => {
      known = undefined;
    });
    return [...new Set([...(await names), ...opened.keys()])].sort();
  };
  const isOutOfReach = settings.isolation === "accounts";
  return separateStore({ shared, own: shared, open, agents, isOutOfReach }, settings.retention);
}

/** Makes sure of an agent's bucket, where agents have their own: whoever runs its tasks may not be allowed to. */
export async function ensureAgentBucket(
  nc: NatsConnection,
  settings: Settings,
  agent: string,
): Promise<void> {
  if (settings.isolation === "shared") return;
  await natsKv(nc, settings, { name: agentBucket(settings, agent), agent });
}
