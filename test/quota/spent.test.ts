import { expect, test } from "vitest";
import { natsKv } from "../../shared/adapters/kv/nats-kv.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { readSpent } from "../../shared/meter/spent.ts";
import { spentName } from "../../shared/meter/values.ts";
import type { PartRecord, TaskStore } from "../../shared/ports/store.ts";
import { agentBucket } from "../../shared/task/names.ts";
import { memoryStore } from "../../shared/testing/memory-store.ts";
import { admitting } from "../support/admitting.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";

const NOW = Date.UTC(2026, 10, 18, 12);
const record = (agent: string | undefined, dollars: object): PartRecord => ({
  text: JSON.stringify(dollars),
  revision: "1",
  ...(agent !== undefined && { agent }),
});
const ofAgent = (name: string) => spentName(NOW, "agent", name);
const ofOwner = (name: string) => spentName(NOW, "owner", name);

/** Records of counts in the shared bucket and in agents' own, as a store of several buckets finds them. */
const parted = (...records: readonly PartRecord[]): TaskStore => ({
  ...memoryStore(),
  getRecords: async (name) => (name === "counts-0" ? records : []),
});
const spent = (...records: readonly PartRecord[]) => readSpent(parted(...records), NOW);

test("an agent's own bucket says nothing of what other agents spent, and it stops none of their submits", async () => {
  const records = [
    record(undefined, { [ofAgent("echo")]: 0.5, [ofOwner("ann")]: 0.5 }),
    record("evil", { [ofAgent("echo")]: 1e9, [ofOwner("ann")]: 1e9, [ofAgent("evil")]: 0.25 }),
  ];
  const { agents, owners } = await spent(...records);
  expect([...agents]).toEqual([
    ["echo", 0.5],
    ["evil", 0.25],
  ]);
  expect([...owners]).toEqual([["ann", 0.75]]);
  const s = admitting({ agentQuota: { usd: 1 }, ownerQuota: { usd: 1 } });
  const { getRecords } = parted(...records);
  const api = s.instance();
  Object.assign(api.store, { getRecords });
  expect(await s.submit(api)).toBe("taken");
});

test("what it says of owners counts up to its own dollars of the same day, theirs together", async () => {
  const day = 86_400_000;
  const { owners } = await spent(
    record("evil", {
      [ofAgent("evil")]: 2,
      [ofOwner("ann")]: 30,
      [ofOwner("bob")]: 10,
      [spentName(NOW - day, "agent", "evil")]: 1e9,
    }),
  );
  expect([...owners]).toEqual([
    ["ann", 1.5],
    ["bob", 0.5],
  ]);
});

test("what an agent says truly counts as it is, also of tasks that have no owner", async () => {
  const honest = { [ofAgent("echo")]: 0.7, [ofOwner("ann")]: 0.1, [ofOwner("bob")]: 0.2 };
  const { agents, owners } = await spent(record("echo", honest), record(undefined, honest));
  expect(agents.get("echo")).toBe(1.4);
  expect(Object.fromEntries(owners)).toEqual({ ann: 0.2, bob: 0.4 });
});

test("of real buckets it is known whose a count is", async () => {
  await using nats = await testNats();
  const { config } = world(nats, "nats-kv", { isolation: "documents" });
  await using deps = await wired(config);
  // Its bucket is made with its first task, which is not of interest here.
  await submit(deps, { agent: "evil", lanes: 1, input: {} }).catch(() => {});
  const own = await natsKv(deps.nc, config.settings, {
    name: agentBucket(config.settings, "evil"),
    agent: "evil",
  });
  const now = Date.now();
  const dollars = { [spentName(now, "agent", "echo")]: 1e9, [spentName(now, "agent", "evil")]: 2 };
  await own.putRecord("counts-0", JSON.stringify(dollars));
  const { agents } = await readSpent(deps.store, now);
  expect([...agents]).toEqual([["evil", 2]]);
});
