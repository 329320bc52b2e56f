import { jetstreamManager } from "@nats-io/jetstream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TARGETS } from "../../../infra/build/targets.ts";
import { text } from "../../../infra/local/model.ts";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { queueOf } from "../../../shared/dispatch/dispatch.ts";
import { dispatchDue } from "../../../shared/dispatch/sweep.ts";
import { PawlError } from "../../../shared/errors/errors.ts";
import { counters } from "../../../shared/meter/counters.ts";
import { readCounts, storeMeter } from "../../../shared/meter/meter.ts";
import type { Delivery } from "../../../shared/ports/bus.ts";
import type { Deps } from "../../../shared/ports/deps.ts";
import { serve } from "../../../shared/runner/serve.ts";
import { streamName } from "../../../shared/task/names.ts";
import { createApp } from "../../../shared/web/app.ts";
import { lastUse } from "../../../shared/web/token-list.ts";
import { createToken, findToken } from "../../../shared/web/tokens.ts";
import { AGENT, agentOf, bench } from "../../support/bench.ts";
import { ALL } from "../../support/http/api.ts";
import { asking } from "../../support/http/asking.ts";
import { samples } from "../../support/http/prometheus.ts";
import { webStage } from "../../support/http/web.ts";
import { calm } from "../../support/observer.ts";
import { next } from "../../support/servers/bus.ts";
import { bundle, deploy, post, varsOf } from "../../support/servers/platforms.ts";
import { oneOfEach, testNats, wired, world } from "../../support/servers/stores.ts";
import { until } from "../../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** The API over what is given, with one agent. */
function asked(deps: Deps, path: string, token: string, lanes = 1) {
  const app = createApp({ agents: [{ name: AGENT, lanes }] });
  const headers = { authorization: `Bearer ${token}` };
  return app.request(path, { headers }, { open: async () => deps, log: deps.log });
}

test("is text that Prometheus can read, with every counter in it, for tokens that may read", async () => {
  await using s = await webStage(nats);
  expect((await s.ask("/metrics")).status).toBe(401);
  expect((await s.ask("/metrics", { token: await s.token("ann", ["submit", "operate"]) })).status).toBe(403);
  const answer = await s.ask("/metrics", { token: await s.token("ann", ["read"]) });
  expect([answer.status, answer.headers.get("content-type")]).toEqual([
    200,
    "text/plain; version=0.0.4; charset=utf-8",
  ]);
  samples(answer.text);
  for (const [name, help] of Object.entries(counters))
    expect(answer.text).toContain(`# HELP pawl_${name}_total ${help}\n# TYPE pawl_${name}_total counter\n`);
  // What a label may hold is a caller's to choose.
  s.deps.meter.count("webhooks", { agent: 'a"b\\c\nd', as: "{x}, 1" });
  const odd = samples((await s.ask("/metrics", { token: await s.token("ann", ["read"]) })).text);
  expect(odd.get('pawl_webhooks_total{agent="a\\"b\\\\c\\nd",as="{x}, 1"}')).toBe(1);
});

test("what was delivered and what was stopped is counted, by how and by which layer", async () => {
  await using s = await webStage(nats);
  const token = await s.token("ann", ALL);
  const submit = (body: object, headers = {}) =>
    s.ask("/v1/tasks", { token, method: "POST", body: { agent: AGENT, input: {}, ...body }, headers });
  const key = { "idempotency-key": "k" };
  for (let i = 0; i < 3; i++) await submit({}, key);
  for (let i = 0; i < 2; i++) await submit({ id: "t" });
  // An ack that gets lost on its way: the message comes again, and its work is not done again.
  const { bus } = s.deps;
  const deaf = (one: Delivery | undefined) => one && { ...one, ack: () => one.nak(0) };
  const pull: typeof bus.pull = (...args) => {
    const pulled = bus.pull(...args);
    return { ...pulled, delivery: pulled.delivery.then(deaf) };
  };
  const lossy = { ...s.deps, bus: { ...bus, pull } };
  await serve(lossy, {
    name: AGENT,
    agent: agentOf(() => "done"),
    mode: "once",
    stop: new AbortController().signal,
  });
  expect(await s.drain()).toEqual({ completed: 1, skipped: 1 });
  await submit({ id: "t" });
  await submit({ id: "bad", input: { fail: true } });
  await s.drain(agentOf(() => Promise.reject(new Error("no")), { attempts: 1 }));
  const found = samples((await s.ask("/metrics", { token })).text);
  const counted = (counter: string, label: string) =>
    found.get(`pawl_${counter}_total{agent="${AGENT}",${label}}`);
  expect({
    completed: counted("deliveries", 'as="completed"'),
    skipped: counted("deliveries", 'as="skipped"'),
    failed: counted("deliveries", 'as="failed"'),
    byKey: counted("duplicates_stopped", 'layer="key"'),
    byWindow: counted("duplicates_stopped", 'layer="window"'),
    byDocument: counted("duplicates_stopped", 'layer="document"'),
    again: found.get(`pawl_redeliveries_total{agent="${AGENT}"}`),
  }).toEqual({ completed: 2, skipped: 1, failed: 1, byKey: 2, byWindow: 1, byDocument: 1, again: 1 });
});

test("what a model costs is counted in tokens and dollars", async () => {
  await using b = await asking(nats, () => ({
    ...text("42"),
    usage: { input_tokens: 1_000, output_tokens: 500 },
  }));
  expect((await b.finish()).state).toBe("completed");
  const token = await createToken(b.deps.store, { owner: "ann", scopes: ["read"], createdAt: 0 });
  const found = samples(await (await asked(b.deps, "/metrics", token)).text());
  expect(found.get(`pawl_model_usd_total{agent="${AGENT}"}`)).toBeCloseTo((1_000 * 2 + 500 * 10) / 1e6, 9);
  expect(found.get(`pawl_model_tokens_total{agent="${AGENT}",kind="input"}`)).toBe(1_000);
  expect(found.get(`pawl_model_tokens_total{agent="${AGENT}",kind="output"}`)).toBe(500);
});

test("queues say how many wait, are under way and came again, and how old the oldest is", async () => {
  await using s = await webStage(nats);
  const token = await s.token("ann", ["read"]);
  const before = Date.now();
  await s.submit({}, { id: "first" });
  const after = Date.now();
  await s.submit({}, { id: "second" });
  const look = async () => {
    const asked = Date.now();
    const agents = (await s.ask("/v1/agents", { token })).json?.agents as Record<string, number>[];
    expect(agents).toHaveLength(2);
    const { oldestAge, ...mine } = agents[0] as Record<string, number>;
    // Servers and test have one clock; JetStream rounds to no more than a millisecond.
    expect(oldestAge).toBeGreaterThanOrEqual(asked - after - 1);
    expect(oldestAge).toBeLessThanOrEqual(Date.now() - before + 1);
    expect(agents[1]).toEqual({
      name: "other",
      lanes: 1,
      pending: 0,
      inFlight: 0,
      redelivered: 0,
      oldestAge: 0,
      left: [],
    });
    const found = samples((await s.ask("/metrics", { token })).text);
    const gauge = (name: string) => found.get(`pawl_queue_${name}{agent="${AGENT}"}`) as number;
    expect([gauge("pending"), gauge("in_flight"), gauge("redelivered")]).toEqual([
      mine.pending,
      mine.inFlight,
      mine.redelivered,
    ]);
    expect(gauge("oldest_seconds") * 1_000).toBeGreaterThanOrEqual(oldestAge as number);
    expect(found.get('pawl_queue_pending{agent="other"}')).toBe(0);
    return mine;
  };
  const tested = { name: AGENT, lanes: 1, redelivered: 0, left: [] };
  expect(await look()).toEqual({ ...tested, pending: 2, inFlight: 0 });
  const taken = await next(s.deps, s.queue);
  expect(await look()).toEqual({ ...tested, pending: 1, inFlight: 1 });
  await taken.nak(0);
  await next(s.deps, s.queue);
  expect(await look()).toEqual({ ...tested, pending: 1, inFlight: 1, redelivered: 1 });
});

test("lanes are added up, and the oldest message of all of them is the oldest", async () => {
  await using s = await webStage(nats);
  const token = await s.token("ann", ["read"]);
  await s.deps.bus.ensure({ ...s.queue, lane: 1 });
  const begun = Date.now();
  for (const orderingKey of ["a", "b", "c", "d"]) await s.submit({}, { lanes: 2, orderingKey });
  const answer = await asked(s.deps, "/v1/agents", token, 2);
  const { agents } = (await answer.json()) as { agents: { oldestAge: number }[] };
  expect(agents).toMatchObject([{ lanes: 2, pending: 4, inFlight: 0 }]);
  expect((await s.deps.bus.state({ ...s.queue, lane: 1 })).pending).toBe(2);
  expect(agents[0]?.oldestAge).toBeLessThanOrEqual(Date.now() - begun + 1);
  // With one lane, what the other holds is not among them, and named.
  const fewer = (await (await asked(s.deps, "/v1/agents", token, 1)).json()) as object;
  const left = [{ stream: streamName({ ...s.queue, lane: 1 }), lane: 1, generation: 1, messages: 2 }];
  expect(fewer).toMatchObject({ agents: [{ lanes: 1, pending: 2, left }] });
});

test("a token for other agents sees nothing of this one's queues and counts", async () => {
  await using s = await webStage(nats);
  await s.submit({});
  await s.drain();
  s.deps.meter.count("takeovers", { agent: "other" });
  const whole = samples((await s.ask("/metrics", { token: await s.token("ann", ["read"]) })).text);
  expect([...whole.keys()].join()).toMatch(/agent="tested"/);
  const limited = await s.ask("/metrics", { token: await s.token("ann", ["read"], ["other"]) });
  expect(limited.text).not.toContain(AGENT);
  expect(samples(limited.text).get('pawl_takeovers_total{agent="other"}')).toBe(1);
  expect(samples(limited.text).get('pawl_queue_pending{agent="other"}')).toBe(0);
});

describe.each(oneOfEach)("$kind", ({ kind, here }) => {
  test.skipIf(!here)("fifty processes that end at the same moment lose no count", async () => {
    await using deps = await wired(calm(world(nats, kind)).config);
    const meters = Array.from({ length: 50 }, () => storeMeter(deps.store, deps.log));
    for (const [i, meter] of meters.entries()) {
      meter.count("deliveries", { agent: "a", as: "completed" });
      meter.count("model_usd", { agent: "a" }, 0.25);
      if (i % 2) meter.count("takeovers", { agent: "b" }, 3);
    }
    await Promise.all(meters.map((meter) => meter.flush()));
    expect(deps.logged).toEqual([]);
    expect(await readCounts(deps.store)).toEqual({
      'pawl_deliveries_total{agent="a",as="completed"}': 50,
      'pawl_model_usd_total{agent="a"}': 12.5,
      'pawl_takeovers_total{agent="b"}': 75,
    });
    // What was flushed is not flushed again, and two in a row add up.
    const [one] = meters;
    await one?.flush();
    one?.count("takeovers", { agent: "b" });
    await Promise.all([one?.flush(), one?.flush()]);
    expect((await readCounts(deps.store))['pawl_takeovers_total{agent="b"}']).toBe(76);
  });
});

test("a store that is away costs counts, and neither work nor a second count", async () => {
  const b = await bench(
    nats,
    "nats-kv",
    agentOf(() => "done"),
  );
  await using _ = b;
  let isAway = true;
  const putRecord: typeof b.deps.store.putRecord = async (...args) => {
    const written = await b.deps.store.putRecord(...args);
    if (isAway) throw new PawlError("store_unavailable", "its answer was lost");
    return written;
  };
  const meter = storeMeter({ getRecord: b.deps.store.getRecord, putRecord }, b.deps.log);
  meter.count("takeovers", { agent: "a" });
  await meter.flush();
  expect(b.deps.logged.map(({ event }) => event)).toEqual(["counts.lost"]);
  isAway = false;
  await meter.flush();
  expect(await readCounts(b.deps.store)).toEqual({ 'pawl_takeovers_total{agent="a"}': 1 });
});

describe("nothing to do", () => {
  const lastWrite = async (deps: Awaited<ReturnType<typeof wired>>) => {
    const jsm = await jetstreamManager(deps.nc, { checkAPI: false });
    const { state } = await jsm.streams.info(`KV_${deps.settings.namespace}-tasks`);
    return state.last_seq;
  };

  test("an invocation that finds nothing, and requests that only look, write nothing", async () => {
    await using s = await webStage(nats);
    const token = await s.token("ann", ALL);
    // The first request notes that its token was used, and for five minutes no other does.
    await s.ask("/v1/tasks", { token });
    const { id } = (await findToken(s.deps.store, token)) as { id: string };
    await until("the use is noted", async () => (await lastUse(s.deps.store, id)) !== undefined);
    const before = await lastWrite(s.deps);
    expect(await dispatchDue(s.deps, AGENT)).toBe(0);
    const idle = await serve(s.deps, {
      name: AGENT,
      agent: agentOf(() => "done"),
      mode: "idle",
      stop: new AbortController().signal,
    });
    expect(idle).toEqual({});
    await s.deps.meter.flush();
    // But for /health, which sees twice a minute whether writes are taken.
    for (const path of ["/v1/tasks", "/v1/agents", "/metrics", "/v1/dead-letters", "/v1/tasks/nobody"])
      await s.ask(path, { token });
    expect(await lastWrite(s.deps)).toBe(before);
  });

  test.each(TARGETS)("nor does a function that is woken for nothing on %s", async (target) => {
    const w = world(nats, "nats-kv");
    await using deps = await wired(w.config);
    await deps.bus.ensure(queueOf(deps, { agent: "walker", lane: 0 }));
    await using deployed = await deploy(await bundle("walker", target), varsOf(w, target));
    const before = await lastWrite(deps);
    for (let i = 0; i < 2; i++)
      expect(await (await post(deployed.url)).json()).toMatchObject({
        agent: "walker",
        ended: "idle",
        handled: {},
      });
    expect(await lastWrite(deps)).toBe(before);
    expect(before).toBe(0);
  });
});
