import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type Cluster, type ClusterNode, startCluster } from "../../infra/drills/faults/cluster.ts";
import { executions, overlaps } from "../../infra/drills/outside/executions.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { laneOf, type Queue, streamName } from "../../shared/task/names.ts";
import { agentOf, bench } from "../support/bench.ts";
import { namesOf, reconciled } from "../support/reconciling.ts";
import { notes, pawl, recordFile } from "../support/servers/runners.ts";
import { type TestWorld, testNats, wired, world } from "../support/servers/stores.ts";
import { allCompleted, until } from "../support/time/until.ts";

let cluster: Cluster;
beforeAll(async () => {
  cluster = await startCluster(testNats);
});
afterEach(() => cluster.heal([]));
afterAll(() => cluster[Symbol.asyncDispose]());

const LANES = 3;
/** One for each lane. */
const IDS = Array.from({ length: LANES }, (_, lane) => {
  for (let i = 0; ; i++) if (laneOf(`t${i}`, LANES) === lane) return `t${i}`;
});

const on = (w: TestWorld, nats: ClusterNode): TestWorld => {
  const config = { ...w.config, nats: { url: nats.url } };
  return { nats, config, env: { ...w.env, NATS_URL: nats.url } };
};

/** A cluster that is being set up or has just healed takes its time; nothing is proven by how long. */
const patiently = <T>(work: () => Promise<T>) =>
  until("the cluster does as it is asked", () => work().catch(() => undefined));

describe("NATS KV in three copies", () => {
  test("a heartbeat is one write; a task that is over before its first one costs none", async () => {
    let beats = 0;
    const agent = agentOf(({ id }) => id === "short" || until("it has beaten", async () => beats >= 3));
    const [node] = cluster.nodes as [ClusterNode];
    const settings = { ackWait: 3_000, requestTimeout: 1_900, replicas: 3 };
    await using b = await patiently(() => bench(node, "nats-kv", agent, settings));
    const keys: string[] = [];
    b.deps.nc.subscribe("$KV.>", {
      callback: (_, { subject }) => void keys.push(subject.split(".").slice(2).join(".")),
    });
    b.deps.nc.subscribe("$JS.ACK.>", {
      callback: (_, { data }) => void (new TextDecoder().decode(data) === "+WPI" && beats++),
    });
    await patiently(() => b.submit({}, { id: "short" }));
    await b.drain();
    expect(keys.filter((key) => /^(task|lease)\./.test(key))).toEqual(Array(3).fill("task.short"));
    await b.submit({}, { id: "long" });
    await b.drain();
    const leases = keys.filter((key) => key === "lease.long").length;
    expect(leases).toBeGreaterThan(0);
    expect(leases).toBeLessThanOrEqual(beats);
  });

  test.each(["silent", "reset"] as const)(
    "its leader is cut off with a holder beside it (%s): nothing overlaps, everything is explained",
    async (cut) => {
      const alone = await cluster.leader();
      const [other] = cluster.nodes.filter((node) => node !== alone) as [ClusterNode];
      const there = world(other, "nats-kv", { ackWait: 3_000, requestTimeout: 1_900, replicas: 3 });
      const here = on(there, alone);
      await using deps = await patiently(() => wired(there.config));
      const { namespace } = there.config.settings;
      const queues = Array.from(
        { length: LANES },
        (_, lane): Queue => ({ namespace, agent: "recorder", lane, generation: 1 }),
      );
      for (const queue of queues) await patiently(() => deps.bus.ensure(queue));
      const streams = [...queues.map(streamName), `KV_${namespace}-tasks`];
      await cluster.lead(alone, streams);

      const file = await recordFile();
      const env = { TEST_RECORD: file, TEST_LANES: String(LANES) };
      // Longer than anything here takes: it ends because it must.
      const a = pawl(here, ["run", "recorder", "--json"], { ...env, TEST_MS: "600000" });
      const task = { agent: "recorder", lanes: LANES };
      for (const id of IDS) await patiently(() => submit(deps, { ...task, id, input: { every: 50 } }));
      await until("A holds every task", async () => new Set(notes(file).map(({ id }) => id)).size === LANES);
      const b = pawl(there, ["run", "recorder", "--json"], { ...env, TEST_MS: "500" });
      await b.says(/"run.started"/);

      cluster.isolate(alone, cut);
      await allCompleted(deps.store, IDS);
      const losses = () => a.text().match(/"event":"lease\.lost"/g)?.length ?? 0;
      await until("A has given all of them up", async () => losses() >= LANES);
      await cluster.heal(streams);

      const all = executions(notes(file));
      const shown = { all: all.map(({ notes, ...one }) => ({ ...one, pid: notes[0]?.pid })), a: a.text() };
      expect(overlaps(all), JSON.stringify(shown)).toEqual([]);
      await b.kill("SIGTERM");
      // The server that was alone is one of three again, and so is its runner.
      await using beside = await patiently(() => wired(here.config));
      await patiently(() => submit(beside, { ...task, id: "after", input: { ms: 10 } }));
      await allCompleted(beside.store, ["after"]);
      await a.kill("SIGTERM");

      for (const id of IDS) {
        const found = (await deps.store.get(id))?.task;
        expect(found).toMatchObject({ state: "completed", attempts: 0 });
        expect(found?.fence).toBeGreaterThan(1);
        expect(found?.settled).toHaveLength(1);
        expect(notes(file).filter((note) => note.id === id && note.what === "end")).toHaveLength(1);
      }
      expect(namesOf(await reconciled(deps))).toEqual([]);
    },
    400_000,
  );
});
