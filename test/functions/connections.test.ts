import { expect, test } from "vitest";
import type { Target } from "../../infra/build/targets.ts";
import { startModel } from "../../infra/local/model.ts";
import { aliveAt } from "../../shared/dispatch/alive.ts";
import { queueOf } from "../../shared/dispatch/dispatch.ts";
import { submit } from "../../shared/dispatch/submit.ts";
import { dispatchDue } from "../../shared/dispatch/sweep.ts";
import { readReport } from "../../shared/reconcile/books/reports.ts";
import { laneOf, streamName } from "../../shared/task/names.ts";
import { createToken } from "../../shared/web/tokens.ts";
import { follow } from "../support/http/sse.ts";
import { observer } from "../support/observer.ts";
import { bundle, deploy, post, SECRET, varsOf, witness } from "../support/servers/platforms.ts";
import { testNats, wired, world } from "../support/servers/stores.ts";
import { until } from "../support/time/until.ts";

/** A server that can be asked who is connected. */
async function countingNats() {
  const nats = await testNats();
  const count = async () => {
    const varz = (await (await fetch(`${nats.monitorUrl}/varz`)).json()) as {
      connections: number;
      total_connections: number;
    };
    return { open: varz.connections, ever: varz.total_connections };
  };
  return { nats, count };
}

async function stage(target: Target, vars: Record<string, string> = {}, given = {}) {
  const { nats, count } = await countingNats();
  const w = world(nats, "nats-kv", given);
  const deps = await observer(w);
  await deps.bus.ensure(queueOf(deps, { agent: "walker", lane: 0 }));
  const deployed = await deploy(await bundle("walker", target), varsOf(w, target, vars));
  const outside = await witness();
  return {
    nats,
    count,
    deps,
    deployed,
    outside,
    walk: (id: string, input = {}) =>
      submit(deps, { agent: "walker", lanes: 1, id, input: { url: outside.url, ...input } }),
    state: async (id: string) => (await deps.store.get(id))?.task.state,
    [Symbol.asyncDispose]: async () => {
      for (const one of [deployed, outside, deps, nats]) await one[Symbol.asyncDispose]();
    },
  };
}

test("Workers: one connection per invocation, closed at its end, also when it fails", async () => {
  await using s = await stage("cloudflare");
  const before = await s.count();
  for (let i = 0; i < 3; i++) expect((await post(s.deployed.url)).status).toBe(200);
  await until("they are closed", async () => (await s.count()).open === before.open);
  expect((await s.count()).ever - before.ever).toBe(3);
  // The bucket is gone: the invocation fails after it has connected.
  const jsm = await (await import("@nats-io/jetstream")).jetstreamManager(s.deps.nc);
  for (const stream of await jsm.streams.list().next()) await jsm.streams.delete(stream.config.name);
  await post(s.deployed.url);
  await until("closed again", async () => (await s.count()).open === before.open);
});

test("Workers: asked to answer at once it does, and works on", async () => {
  await using s = await stage("cloudflare");
  await s.walk("t", { steps: 2 });
  const first = s.outside.hold(/t\/0$/);
  const answer = await post(s.deployed.url, { prefer: "respond-async" });
  expect([answer.status, await answer.json()]).toEqual([202, { accepted: true }]);
  expect(await s.state("t")).not.toBe("completed");
  first.letGo();
  await until("t is completed", async () => (await s.state("t")) === "completed");
});

test("Cloud Run: the connection is kept between invocations, and heals itself", async () => {
  await using s = await stage("gcp");
  await post(s.deployed.url);
  const before = await s.count();
  for (let i = 0; i < 3; i++) {
    await s.walk(`t${i}`);
    expect((await post(s.deployed.url)).status).toBe(200);
  }
  expect((await s.count()).ever).toBe(before.ever);
  await s.nats.halt("SIGKILL");
  await s.nats.restart();
  await until("the test is connected again", async () => s.walk("after").catch(() => undefined));
  await until("after is completed", async () => {
    await post(s.deployed.url);
    return (await s.state("after")) === "completed";
  });
});

test("Cloud Run: told to end, it hands off its task and ends well", async () => {
  await using s = await stage("gcp", {}, { ackWait: 9_000, stopGrace: 6_000 });
  await s.walk("t", { steps: 50, ms: 200 });
  const answer = post(s.deployed.url).then(
    (one) => one.json(),
    () => "cut",
  );
  await until("it walks", async () => s.outside.seen.length >= 2);
  process.kill(s.deployed.pid, "SIGTERM");
  expect(await s.deployed.exited).toBe(0);
  expect((await s.deps.store.get("t"))?.task).toMatchObject({
    state: "dispatched",
    released: true,
    attempts: 0,
  });
  await answer;
});

test.each(["cloudflare", "gcp"] as const)(
  "a time limit that leaves no time for work is refused: %s",
  async (target) => {
    await using s = await stage(target, { PAWL_TIME_LIMIT: "5s" });
    const answer = await post(s.deployed.url);
    expect([answer.status, await answer.json()]).toMatchObject([
      500,
      {
        code: "setting_invalid",
        detail: expect.stringMatching(/time limit of 5000 ms leaves nothing for work/),
      },
    ]);
  },
);

test.each(["cloudflare", "gcp"] as const)(
  "an agent asks its model on %s, and its words are told while it speaks",
  async (target) => {
    await using nats = await testNats();
    const words = ["from ", "the ", "edge"].map((word) => ({ type: "text", text: word }));
    await using model = await startModel(() => ({ content: words, pause: 200 }));
    const w = world(nats, "nats-kv");
    await using deps = await wired(w.config);
    await deps.bus.ensure(queueOf(deps, { agent: "asker", lane: 0 }));
    await submit(deps, { agent: "asker", lanes: 1, id: "t", input: {}, meta: { owner: "ann" } });
    const vars = varsOf(w, target, { ANTHROPIC_API_KEY: "test", ANTHROPIC_BASE_URL: model.url });
    await using deployed = await deploy(await bundle("asker", target), vars);
    await using api = await deploy(await bundle("api", target), vars);
    const token = await createToken(deps.store, { owner: "ann", scopes: ["read"], createdAt: 0 });
    const headers = { authorization: `Bearer ${token}` };
    const events = await follow(fetch(`${api.url}/v1/tasks/t/events?deltas=true`, { headers }));
    await events.until("submit");
    await Promise.all([post(deployed.url), events.rest()]);
    const deltas = events.seen.filter(({ event }) => event === "delta").map(({ data }) => data);
    expect(deltas.length).toBeGreaterThan(1);
    expect(deltas[0]).toMatchObject({ fence: 1, key: "ask/turn 1#1", at: 0 });
    expect(deltas.map((one) => one.text).join("")).toBe("from the edge");
    expect((await deps.store.get("t"))?.task).toMatchObject({
      state: "completed",
      result: { text: "from the edge", turns: 1 },
    });
  },
);

test.each(["cloudflare", "gcp"] as const)("dispatch, reconcile and api on %s", async (target) => {
  await using nats = await testNats();
  const w = world(nats, "nats-kv");
  await using deps = await wired(w.config);
  for (const agent of ["walker", "recorder", "stepper", "asker"])
    await deps.bus.ensure(queueOf(deps, { agent, lane: 0 }));
  const vars = varsOf(w, target);
  await using dispatch = await deploy(await bundle("dispatch", target), vars);
  await using reconcile = await deploy(await bundle("reconcile", target), vars);
  await using api = await deploy(await bundle("api", target), vars);
  // Rolled back to scheduled, because its queue was away: due at once.
  const broken = {
    ...deps,
    bus: { ...deps.bus, publish: () => Promise.reject(Object.assign(new Error("full"), {})) },
  };
  // In a lane that its agent does not have any more.
  await submit(broken, { agent: "walker", lanes: 8, id: "t", input: {} }).catch(() => {});
  expect((await deps.store.get("t"))?.task.state).toBe("scheduled");
  const before = Date.now();
  const dispatched = await post(dispatch.url);
  expect(await dispatched.json()).toMatchObject({
    dispatched: { recorder: 0, stepper: 0, walker: 1 },
    expired: 0,
  });
  expect(await aliveAt(deps.store)).toBeGreaterThanOrEqual(before);
  const queue = streamName(queueOf(deps, { agent: "walker", lane: 0 }));
  expect((await deps.store.get("t"))?.task).toMatchObject({
    state: "dispatched",
    queue,
    lane: laneOf("t", 8),
  });
  expect(await dispatchDue(deps, "walker")).toBe(0);
  expect(await (await post(reconcile.url)).json()).toMatchObject({
    finished: true,
    ok: true,
    report: expect.stringMatching(/^\d{4}-W\d\d$/),
    verdict: "All 1 sequences explained; nothing completed twice.",
  });
  expect((await readReport(deps.store, "html")).text).toContain("All 1 sequences explained");
  const health = await fetch(`${api.url}/health`);
  expect([health.status, await health.json()]).toEqual([200, { ok: true }]);
  expect((await fetch(`${api.url}/v1/tasks`)).status).toBe(401);
  await nats.halt();
  // What was found is good for five seconds.
  await until("it is found out", async () => (await fetch(`${api.url}/health`)).status === 503);
  const sick = await fetch(`${api.url}/health`);
  expect([sick.status, await sick.clone().text()]).toEqual([503, expect.not.stringContaining("127.0.0.1")]);
  expect(JSON.stringify(await sick.json())).not.toContain(SECRET);
});
