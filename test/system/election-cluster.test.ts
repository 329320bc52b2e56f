import { expect, test } from "vitest";
import { wire } from "../../functions/wiring/wire.node.ts";
import { startCluster } from "../../infra/drills/faults/cluster.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { streamName } from "../../shared/task/names.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";

test("submits go on while three servers choose new leaders, and who connects then waits", async () => {
  await using cluster = await startCluster(testNats);
  const killed = await cluster.leader();
  const [near] = cluster.nodes.filter((node) => node !== killed);
  if (!near) throw new Error("no other node");
  const { config } = world(near, "nats-kv", { replicas: 3, requestTimeout: 1_000 });
  await using deps = await wired(config);
  const { namespace } = config.settings;
  const queue = { namespace, agent: "a", lane: 0, generation: 1 };
  await deps.bus.ensure(queue);
  await cluster.lead(killed, [streamName(queue), `KV_${namespace}-tasks`]);

  let killing = true;
  const accepted: string[] = [];
  const submitter = async (name: string) => {
    for (let i = 0; killing || i < 3; i++) {
      const id = `${name}-${i}`;
      expect(await submit(deps, { agent: "a", lanes: 1, id, input: {} })).toMatchObject({ kind: "accepted" });
      accepted.push(id);
    }
  };
  const submitters = Promise.all(["x", "y", "z"].map(submitter));
  await killed.halt("SIGTERM");
  const connecting = wire(config, () => {});
  await using late = await connecting;
  killing = false;
  await submitters;
  expect(await late.store.get(accepted[0] ?? "")).toBeDefined();
  await killed.restart();
});
