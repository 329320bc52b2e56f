import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { examineLive } from "../../infra/doctor/examine.ts";
import { whyUnreached } from "../../infra/doctor/live/around.ts";
import { gather } from "../../infra/doctor/live/gather.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { sayAlive } from "../../shared/dispatch/alive.ts";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { agentBucket, bucketName, consumerName, streamName } from "../../shared/task/names.ts";
import { pawl } from "../support/servers/runners.ts";
import { type TestWorld, testNats, wired, world } from "../support/servers/stores.ts";
import { SHARED, tempAgents } from "../support/temp-agents.ts";
import { later } from "../support/time/clocks.ts";

const DAY = 86_400_000;
const agents = tempAgents();
const NOWHERE = join(agents, "no-creds");
/** By its name an identity is anybody who may do all; this one may not look at consumers. */
const USERS = `authorization { users: [
  { user: all, password: all },
  { user: blind, password: blind, permissions: { publish: { allow: [">"], deny: ["$JS.API.CONSUMER.INFO.>"] } } }
] }
no_auth_user: all`;

let nats: LocalNats;
beforeAll(async () => {
  const agent = (rest: string) =>
    `import { defineAgent } from "${SHARED}/agent.ts";\nexport default defineAgent({ ${rest} run: () => 1 });\n`;
  mkdirSync(agents, { recursive: true });
  writeFileSync(join(agents, "ticket.ts"), agent(`secrets: ["JIRA_TOKEN"], limits: { lanes: 2 },`));
  const every = '{ name: "every", cron: "* * * * *", timezone: "UTC", input: {} }';
  writeFileSync(join(agents, "tock.ts"), agent(`schedules: [${every}],`));
  nats = await testNats({ config: USERS });
});
afterAll(() => nats.stop());

const look = async (w: TestWorld, env: Record<string, string> = {}) =>
  examineLive(await gather({ env: { ...w.env, JIRA_TOKEN: "t", ...env }, agents, creds: NOWHERE }));
const rulesOf = ({ findings }: Awaited<ReturnType<typeof look>>) =>
  findings.map(({ severity, rule }) => `${severity} ${rule}`);

/** A deployment that is well, with a task in its queue. */
async function deployed() {
  const w = world(nats, "nats-kv");
  const deps = await wired(w.config);
  for (const lane of [0, 1]) await deps.bus.ensure(queueOf(deps, { agent: "ticket", lane }));
  await deps.bus.ensure(queueOf(deps, { agent: "tock", lane: 0 }));
  const isTicked = await deps.store.putRecord("cron", JSON.stringify({ "tock/every": Date.now() }));
  await sayAlive(deps);
  await submit(deps, { agent: "ticket", lanes: 2, id: "t", input: {} });
  const jsm = await jetstreamManager(deps.nc);
  const stream = streamName(queueOf(deps, { agent: "ticket", lane: 0 }));
  return { w, deps, jsm, stream, isTicked, [Symbol.asyncDispose]: () => deps[Symbol.asyncDispose]() };
}

test("Pawl's own stack has nothing wrong with it, and is not changed by a look", async () => {
  await using d = await deployed();
  const streams = async () => {
    const all: unknown[] = [];
    for await (const { config, state } of d.jsm.streams.list())
      all.push([config, state.messages, state.last_seq]);
    return JSON.stringify(all);
  };
  const before = await streams();
  const seen = await look(d.w);
  expect(seen.findings).toEqual([]);
  expect(seen.unseen).toEqual([]);
  expect(seen.examined).toEqual([
    "the settings",
    expect.stringMatching(/^nats-server 2\./),
    d.stream,
    d.stream.replace("_0_", "_1_"),
    d.stream.replace("_ticket_", "_tock_"),
    `KV_${bucketName(d.deps.settings)}`,
  ]);
  expect(await streams()).toBe(before);

  const command = pawl(d.w, ["doctor"], { PAWL_AGENTS_DIR: agents, JIRA_TOKEN: "t" });
  expect(await command.exited).toBe(0);
  expect(command.text()).toMatch(/^nothing found: the settings, nats-server 2/);
});

test("where nothing was deployed yet there is nothing to find, and nothing is made", async () => {
  const w = world(nats, "nats-kv");
  const { findings, unseen } = await look(w);
  expect(findings).toEqual([]);
  expect(unseen).toEqual([
    expect.stringMatching(/_ticket_0_g1, .*_ticket_1_g1, .*_tock_0_g1: not there yet$/),
    expect.stringMatching(/^KV_.*-tasks: not there yet$/),
  ]);
  await using deps = await wired(world(nats, "nats-kv").config);
  const names: string[] = [];
  for await (const name of (await jetstreamManager(deps.nc)).streams.names()) names.push(name);
  expect(names.filter((name) => name.toLowerCase().includes(w.config.settings.namespace))).toEqual([]);
});

test("what somebody changed, left, or never started is named", async () => {
  await using d = await deployed();
  const { deps, jsm, stream } = d;
  const queue = queueOf(deps, { agent: "ticket", lane: 3 });
  await deps.bus.ensure(queue);
  const message = { taskId: "left", data: new Uint8Array(), msgId: "left", headers: {} };
  await deps.bus.publish(queue, message);
  await jsm.consumers.update(stream, consumerName(queue), { ack_wait: 1_000_000_000 });
  await jsm.streams.update(stream, { duplicate_window: 60_000_000_000 });
  await jsm.consumers.delete(stream.replace("_0_", "_1_"), consumerName(queue));
  await jsm.streams.update(`KV_${bucketName(deps.settings)}`, { max_age: 3_600_000_000_000 });
  await jsm.streams.delete(`${deps.settings.namespace.toUpperCase()}_advisories`);
  await submit(deps, { agent: "ticket", lanes: 2, id: "late", input: {}, at: Date.now() + DAY });
  const stored = await deps.store.get("late");
  const task = { ...stored?.task, dueAt: Date.now() - 200_000 } as never;
  await deps.store.replace(task, stored?.revision as string);

  if (d.isTicked.kind !== "written") throw new Error("nobody else writes ticks");
  const ticks = JSON.stringify({ "tock/every": Date.now() - 600_000 });
  await deps.store.putRecord("cron", ticks, d.isTicked.revision);
  await sayAlive(later(deps, -600_000));

  const seen = await look(d.w, { JIRA_TOKEN: "" });
  expect(rulesOf(seen)).toEqual([
    "error advisories-uncaptured",
    "error queue-unsafe",
    "error consumer-gone",
    "error bucket-unsafe",
    "error dispatch-silent",
    "error dispatch-silent",
    "error dispatch-silent",
    "warning queue-differs",
    "warning lane-left",
    "warning secret-missing",
  ]);
  const of = (rule: string) => seen.findings.find((one) => one.rule === rule);
  expect(of("queue-unsafe")).toMatchObject({
    is: expect.stringContaining(`ack_wait of ${stream} is 1s. Shorter, a task that is worked on`),
    set: "ack_wait: 30s",
  });
  expect(of("bucket-unsafe")).toMatchObject({ is: expect.stringMatching(/^max_age of KV_.*-tasks is 1h$/) });
  expect(seen.findings.filter(({ rule }) => rule === "dispatch-silent").map(({ is }) => is)).toEqual([
    expect.stringMatching(/^the dispatch function came last 10 min/),
    expect.stringMatching(/^task late of ticket is due for \d+ min.*, and nobody has dispatched it$/),
    expect.stringMatching(/^schedule every of tock is due for /),
  ]);
  expect(of("secret-missing")?.is).toBe("ticket declares JIRA_TOKEN, not set here");
});

test("who keeps agents apart is told of an identity that may do all, and of a bucket that is not there", async () => {
  await using d = await deployed();
  const seen = await look(d.w, { PAWL_ISOLATION: "documents" });
  expect(rulesOf(seen)).toEqual(["error permissions-too-wide"]);
  const bucket = `KV_${agentBucket(d.deps.settings, "ticket")}`;
  expect(seen.unseen).toEqual([`${bucket}, ${bucket.replace("ticket", "tock")}: not there yet`]);
  await expect(d.jsm.streams.info(bucket)).rejects.toThrow(/not found/);
});

test("a right that is missing is named, and the rest is looked at", async () => {
  await using d = await deployed();
  const seen = await look(d.w, { NATS_USER: "blind", NATS_PASSWORD: "blind" });
  expect(rulesOf(seen)).toEqual([
    "error permission-missing",
    "error permission-missing",
    "error permission-missing",
  ]);
  expect(seen.findings[0]?.is).toMatch(
    new RegExp(`^looking at ${d.stream}: .*NATS refused it: .*\\$JS\\.API\\.CONSUMER\\.INFO\\.${d.stream}`),
  );
  expect(seen.examined).toContain(`KV_${bucketName(d.deps.settings)}`);
});

test("a WebSocket that opens is reached; another address says why not", async () => {
  expect(await whyUnreached(nats.wsUrl)).toBeUndefined();
  expect(await whyUnreached(nats.monitorUrl.replace("http", "ws"))).toMatch(/\w/);
});

test("settings that contradict each other are told, all of them, before any server is asked", async () => {
  const env = {
    NATS_URL: "nats://127.0.0.1:1",
    PAWL_STORE: "nats-kv",
    PAWL_REPLICAS: "2",
    PAWL_NATS_URL: "x",
  };
  const seen = examineLive(await gather({ env, agents, creds: NOWHERE }));
  expect(seen.findings.map(({ rule, field }) => [rule, field])).toEqual([
    ["settings", "PAWL_NATS_URL"],
    ["settings", "PAWL_REPLICAS"],
    ["secret-missing", "ticket"],
  ]);
  const { PAWL_REPLICAS, PAWL_NATS_URL, ...right } = env;
  await expect(gather({ env: right, agents, creds: NOWHERE })).rejects.toThrow(
    "NATS at nats://127.0.0.1:1 can't be reached",
  );
});
