import { createServer } from "node:net";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type { LocalNats, LocalNatsOptions } from "../../local/nats-server.ts";
import { freePort, onFreePorts } from "../../local/ports.ts";
import { until } from "../until.ts";
import { type CuttingProxy, cuttingProxy } from "./proxy.ts";

/** "silent": no byte passes and connections stay, as when a network goes away. "reset": they are torn down too. */
export type Cut = "silent" | "reset";

export interface ClusterNode extends LocalNats {
  readonly name: string;
}

export interface Cluster extends AsyncDisposable {
  readonly nodes: readonly ClusterNode[];
  /** The node that leads the servers themselves: cut off, it takes longest to notice. */
  leader(): Promise<ClusterNode>;
  /** Makes one node the leader of these streams and of all their consumers. */
  lead(node: ClusterNode, streams: readonly string[]): Promise<void>;
  /** Separates one node from the two others, for servers only: its own clients still reach it. */
  isolate(node: ClusterNode, cut: Cut): void;
  /** Takes the cut back. Resolves when every copy of these streams has caught up. */
  heal(streams: readonly string[]): Promise<void>;
}

const NODES = 3;
const PATIENCE = 150_000;

/** How one server of it is started. */
type StartNats = (options: LocalNatsOptions) => Promise<LocalNats>;

/** Three nats-servers with JetStream whose links to each other run through proxies of ours, and nowhere else. */
export function startCluster(startNats: StartNats): Promise<Cluster> {
  return onFreePorts(() => linked(startNats));
}

async function linked(startNats: StartNats): Promise<Cluster> {
  await using started = new AsyncDisposableStack();
  // Servers tell each other where to find a third one. What they tell leads nowhere, so that no link avoids its proxy.
  const nowhere = await refusingPort(started);
  const links: { readonly ends: readonly string[]; readonly proxy: CuttingProxy }[] = [];
  const nodes: ClusterNode[] = [];
  const names = Array.from({ length: NODES }, (_, i) => `n${i + 1}`);
  const ports = new Map<string, number>();
  for (const name of names) ports.set(name, await freePort());
  for (const name of names) {
    const routes: string[] = [];
    for (const other of names.filter((one) => one !== name)) {
      const proxy = started.use(await cuttingProxy(`127.0.0.1:${ports.get(other)}`));
      links.push({ ends: [name, other], proxy });
      routes.push(`"${proxy.url}"`);
    }
    const config = `server_name: ${name}
cluster {
  name: test, listen: "127.0.0.1:${ports.get(name)}", advertise: "127.0.0.1:${nowhere}"
  no_advertise: true, pool_size: -1, routes: [${routes.join(", ")}]
}`;
    nodes.push(Object.assign(started.use(await startNats({ config })), { name }));
  }

  const nc = await connect({ servers: nodes.map(({ url }) => url), maxReconnectAttempts: -1 });
  started.defer(() => nc.close());
  // Whoever has no leader does not answer at all: ask again soon.
  const timeout = 1_000;
  const jsm = await jetstreamManager(nc, { timeout, checkAPI: false });
  const api = async (subject: string, body: object = {}) => {
    const answer = await nc.request(`$JS.API.${subject}`, JSON.stringify(body), { timeout });
    return answer.json<{ error?: unknown }>();
  };
  const eventually = (what: string, ask: () => Promise<boolean | undefined>) =>
    until(what, () => ask().catch(() => false), PATIENCE);

  /** Each pair of servers has one link, and the end that dialed shows a proxy's port. */
  const isLinked = async () => {
    const asked = nodes.map((node) => monitored<{ routes: { port: number }[] }>(node, "routez"));
    const routes = (await Promise.all(asked)).flatMap((one) => one.routes);
    const dialed = routes.filter(({ port }) => links.some(({ proxy }) => proxy.url.endsWith(`:${port}`)));
    return routes.length === NODES * (NODES - 1) && dialed.length === routes.length / 2;
  };
  /** Linked servers are not yet ready to hold copies: one stream in three of them is the proof. */
  const stands = () =>
    eventually("the cluster stands", async () => {
      if (!(await isLinked())) return false;
      await jsm.streams.add({ name: "probe", subjects: ["probe"], num_replicas: NODES });
      return jsm.streams.delete("probe");
    });
  await stands();

  const switchLinks = (node: ClusterNode, cut: Cut, on: boolean) => {
    for (const { ends, proxy } of links) {
      if (!ends.includes(node.name)) continue;
      if (cut === "silent") proxy.stall(on);
      else proxy.cut(on);
    }
  };
  let reconnect = () => {};
  const own = started.move();
  return {
    nodes,
    leader: () =>
      until("the servers have a leader", async () => {
        const [first] = nodes as [ClusterNode];
        const { meta_cluster } = await monitored<{ meta_cluster?: { leader?: string } }>(first, "jsz");
        return nodes.find(({ name }) => name === meta_cluster?.leader);
      }),
    lead: async (node, streams) => {
      const stepDown = async (kind: "STREAM" | "CONSUMER", name: string) => {
        const subject = `${kind}.LEADER.STEPDOWN.${name}`;
        // Servers before 2.11 take no wishes: then it is asked until the right one happens to be elected.
        if ((await api(subject, { placement: { preferred: node.name } })).error) await api(subject);
        return false;
      };
      for (const stream of streams) {
        await eventually(`${node.name} leads ${stream}`, async () => {
          const { cluster } = await jsm.streams.info(stream);
          if (cluster?.leader !== node.name) return stepDown("STREAM", stream);
          const consumers = await jsm.consumers.list(stream).next();
          const stray = consumers.find((one) => one.cluster?.leader !== node.name);
          return stray ? stepDown("CONSUMER", `${stream}.${stray.name}`) : true;
        });
      }
    },
    isolate: (node, cut) => {
      switchLinks(node, cut, true);
      reconnect = () => switchLinks(node, cut, false);
    },
    heal: async (streams) => {
      reconnect();
      await stands();
      for (const stream of streams) {
        await eventually(`${stream} is whole`, async () => {
          const { leader, replicas = [] } = (await jsm.streams.info(stream)).cluster ?? {};
          return leader !== undefined && replicas.every(({ current, offline }) => current && !offline);
        });
      }
    },
    [Symbol.asyncDispose]: () => own.disposeAsync(),
  };
}

async function monitored<T>({ monitorUrl }: LocalNats, what: "routez" | "jsz"): Promise<T> {
  return (await (await fetch(`${monitorUrl}/${what}`)).json()) as T;
}

async function refusingPort(until: AsyncDisposableStack): Promise<number> {
  const server = createServer((socket) => void socket.destroy());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  until.defer(() => new Promise((resolve) => server.close(() => resolve())));
  const address = server.address();
  return typeof address === "object" && address ? address.port : 0;
}
