import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TARGETS } from "../../../infra/build/targets.ts";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { queueOf } from "../../../shared/dispatch/dispatch.ts";
import { createToken } from "../../../shared/web/tokens.ts";
import { ALL, apiStage } from "../../support/http/api.ts";
import { bundle, deploy, varsOf } from "../../support/servers/platforms.ts";
import { raw } from "../../support/servers/raw.ts";
import { stores, testNats, wired, world } from "../../support/servers/stores.ts";
import { later } from "../../support/time/clocks.ts";
import { until } from "../../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

describe.each(stores)("$kind", ({ kind, here }) => {
  test.skipIf(!here)("a task from submit to result, and the same key is the same task", async () => {
    await using s = await apiStage(nats, kind);
    const token = await s.token("ann");
    const body = { agent: "tested", input: { n: 1 }, labels: { team: "a" } };
    const key = { "idempotency-key": "order 7" };
    const first = await s.call(token, "POST", "/v1/tasks", body, key);
    expect(first).toMatchObject({ status: 201, body: { kind: "accepted", state: "dispatched" } });
    const id = first.body.id as string;
    expect(first.headers.get("location")).toBe(`/v1/tasks/${id}`);
    expect(await s.call(token, "POST", "/v1/tasks", body, key)).toMatchObject({
      status: 200,
      body: { id, kind: "already" },
    });
    for (const other of [
      { ...body, input: { n: 2 } },
      { ...body, labels: {} },
      { ...body, orderingKey: "x" },
    ])
      expect(await s.call(token, "POST", "/v1/tasks", other, key)).toMatchObject({
        status: 422,
        body: { code: "idempotency_key_reused" },
      });
    // Another owner's key is another task.
    const bob = await s.token("bob");
    const theirs = await s.call(bob, "POST", "/v1/tasks", body, key);
    expect(theirs.status).toBe(201);
    expect(theirs.body.id).not.toBe(id);
    await s.drain();
    expect(await s.call(token, "GET", `/v1/tasks/${id}`)).toMatchObject({
      status: 200,
      body: { state: "completed", result: "done", meta: { owner: "ann", labels: { team: "a" } } },
    });
    expect((await s.call(bob, "GET", `/v1/tasks/${id}`)).status).toBe(404);
    const listed = await s.call(bob, "GET", "/v1/tasks?agent=tested&limit=10");
    expect((listed.body.tasks as { id: string }[]).map((task) => task.id)).toEqual([theirs.body.id]);
  });

  test.skipIf(!here)("a document that can't be read is in no list, and an error of its own", async () => {
    await using s = await apiStage(nats, kind);
    const token = await s.token("ann", ALL);
    for (const id of ["whole", "odd"])
      await s.call(token, "POST", "/v1/tasks", { agent: "tested", id, input: {} });
    const past = await raw(s.deps, s.world.config.project);
    await past.putTask("odd", "no json");
    const { status, body } = await s.call(token, "GET", "/v1/tasks");
    expect({
      status,
      ids: (body.tasks as { id: string }[]).map(({ id }) => id),
      names: Object.keys(body),
    }).toEqual({
      status: 200,
      ids: ["whole"],
      names: ["tasks"],
    });
    expect(await s.call(token, "GET", "/v1/tasks/odd")).toMatchObject({
      status: 500,
      body: { code: "document_unreadable" },
    });
  });

  test.skipIf(!here)("twenty first requests at once with one key are one task", async () => {
    await using s = await apiStage(nats, kind);
    const token = await s.token("ann");
    const body = { agent: "tested", input: {} };
    const calls = Array.from({ length: 20 }, () =>
      s.call(token, "POST", "/v1/tasks", body, { "idempotency-key": "k" }),
    );
    const answers = await Promise.all(calls);
    expect(new Set(answers.map((one) => one.body.id)).size).toBe(1);
    expect(answers.filter((one) => one.status === 201).length).toBeGreaterThanOrEqual(1);
    expect(answers.every((one) => one.status === 200 || one.status === 201)).toBe(true);
    const tally = await s.drain();
    expect(tally.completed).toBe(1);
  });
});

test("no answer is kept by a cache, or taken for a page", async () => {
  await using s = await apiStage(nats, "nats-kv");
  const token = await s.token("ann");
  await s.submit({}, { id: "t", meta: { owner: "ann" } });
  await s.drain();
  const paths = ["/v1/tasks", "/v1/tasks/none", "/v1/openapi.json", "/nowhere", "/health", "/ui/login"];
  // Of a task that is over the stream ends at once.
  paths.push("/v1/tasks/t/events");
  for (const [path, given] of [
    ...paths.map((one) => [one, token] as const),
    ["/v1/tasks", "wrong"] as const,
  ]) {
    const { headers } = await s.call(given, "GET", path);
    expect(headers.get("x-content-type-options"), path).toBe("nosniff");
    expect(headers.get("cache-control"), path).toBe("no-store");
  }
});

test("a task for later is dispatched when it is due, not before", async () => {
  await using s = await apiStage(nats);
  const token = await s.token("ann");
  const at = new Date(Date.now() + 600_000).toISOString();
  const made = await s.call(token, "POST", "/v1/tasks", { agent: "tested", input: {}, at });
  expect(made.body).toMatchObject({ kind: "accepted", state: "scheduled" });
  await s.drain();
  expect((await s.task(made.body.id as string)).state).toBe("scheduled");
  Object.assign(s.deps, later(s.deps, 600_000));
  await until("it is done", async () => {
    await s.drain();
    return (await s.task(made.body.id as string)).state === "completed";
  });
  expect(await s.task(made.body.id as string)).toMatchObject({ dispatches: 1, attempts: 0 });
});

test("a redrive from an entry of the journal does again what comes from there on, and keeps the effects", async () => {
  let run = 1;
  await using s = await apiStage(nats, "nats-kv", async ({ step, effect }) => {
    const [first, second] = [await step("first", () => run), await step("second", () => run)];
    const filed = await effect("file", { run: () => run });
    if (run === 1) throw new Error("no");
    return [first, second, filed];
  });
  const boss = await s.token("boss", ALL);
  await s.submit({}, { id: "t" });
  await s.drain();
  run = 2;
  expect(await s.call(boss, "POST", "/v1/tasks/t/redrive", { from: "second" })).toMatchObject({
    status: 200,
    body: { id: "t", state: "dispatched" },
  });
  await s.drain();
  expect((await s.call(boss, "GET", "/v1/tasks/t")).body).toMatchObject({
    state: "completed",
    result: [1, 2, 1],
    history: expect.arrayContaining([expect.objectContaining({ event: "redrive", note: "from second" })]),
  });
});

test("what operators do: redrive, cancel, signal, approve, resolve; each needs the scope", async () => {
  await using s = await apiStage(nats, "nats-kv", () => {
    throw new Error("no");
  });
  const ann = await s.token("ann");
  const boss = await s.token("boss", ALL);
  const { id } = (await s.call(ann, "POST", "/v1/tasks", { agent: "tested", input: {} })).body as {
    id: string;
  };
  for (const verb of ["cancel", "redrive", "resolve", "signal", "approvals/x"])
    expect(await s.call(ann, "POST", `/v1/tasks/${id}/${verb}`, {})).toMatchObject({
      status: 403,
      body: { code: "scope_missing" },
    });
  await s.drain();
  expect(await s.call(boss, "GET", "/v1/dead-letters")).toMatchObject({
    body: { tasks: [{ id, state: "failed" }] },
  });
  expect(await s.call(boss, "POST", `/v1/tasks/${id}/cancel`)).toMatchObject({ status: 409 });
  expect(await s.call(boss, "POST", `/v1/tasks/${id}/redrive`, { from: "read#1" })).toMatchObject({
    status: 409,
    body: { code: "redrive_refused", detail: expect.stringContaining('no entry "read#1"') },
  });
  expect(await s.call(boss, "POST", `/v1/tasks/${id}/redrive`, { fromScratch: true })).toMatchObject({
    status: 200,
    body: { id, state: "dispatched" },
  });
  expect(
    await s.call(boss, "POST", `/v1/tasks/${id}/approvals/go`, { approved: true, early: true }),
  ).toMatchObject({
    status: 200,
  });
  const event = { name: "n", value: [1], early: true };
  expect(await s.call(boss, "POST", `/v1/tasks/${id}/signal`, event)).toMatchObject({ status: 200 });
  expect((await s.task(id)).signals).toMatchObject([
    { name: "approval:go", value: { approved: true, by: "boss" } },
    { name: "n", value: [1] },
  ]);
  expect(await s.call(boss, "POST", `/v1/tasks/${id}/resolve`, { happened: false })).toMatchObject({
    status: 409,
  });
  expect(await s.call(boss, "POST", `/v1/tasks/${id}/cancel`)).toMatchObject({
    body: { state: "cancelled" },
  });
  expect((await s.call(boss, "GET", "/v1/agents")).body).toMatchObject({
    agents: [{ name: "tested", lanes: 1, pending: 1, inFlight: 0 }, { name: "other" }],
  });
});

test("a token limited to agents sees and submits to no others", async () => {
  await using s = await apiStage(nats);
  const limited = await s.token("ann", ALL, ["other"]);
  const whole = await s.token("ann", ALL);
  const { id } = (await s.call(whole, "POST", "/v1/tasks", { agent: "tested", input: {} })).body as {
    id: string;
  };
  expect((await s.call(limited, "GET", `/v1/tasks/${id}`)).status).toBe(404);
  expect((await s.call(limited, "POST", `/v1/tasks/${id}/cancel`)).status).toBe(404);
  expect(await s.call(limited, "POST", "/v1/tasks", { agent: "tested", input: {} })).toMatchObject({
    status: 422,
    body: { code: "agent_unknown" },
  });
  expect((await s.call(limited, "GET", "/v1/agents")).body).toMatchObject({ agents: [{ name: "other" }] });
});

test.each(TARGETS)("the API as deployed on %s", async (target) => {
  const w = world(nats, "nats-kv");
  await using deps = await wired(w.config);
  await deps.bus.ensure(queueOf(deps, { agent: "walker", lane: 0 }));
  const token = await createToken(deps.store, { owner: "ann", scopes: ALL, createdAt: 0 });
  await using api = await deploy(await bundle("api", target), varsOf(w, target));
  const headers = { authorization: `Bearer ${token}`, "idempotency-key": randomUUID() };
  const body = JSON.stringify({ agent: "walker", input: { url: "http://127.0.0.1:1" } });
  const made = await fetch(`${api.url}/v1/tasks`, { method: "POST", headers, body });
  const { id } = (await made.json()) as { id: string };
  expect(made.status).toBe(201);
  expect((await fetch(`${api.url}/v1/tasks`, { method: "POST", headers, body })).status).toBe(200);
  const found = await fetch(`${api.url}/v1/tasks/${id}`, { headers });
  expect(await found.json()).toMatchObject({ id, state: "dispatched", agent: "walker" });
  expect((await fetch(`${api.url}/v1/tasks/${id}`)).status).toBe(401);
});

test.each(TARGETS)("the API on %s goes by PAWL_CORS_ORIGIN and PAWL_RATE_LIMIT", async (target) => {
  const w = world(nats, "nats-kv");
  await using deps = await wired(w.config);
  const token = await createToken(deps.store, { owner: "ann", scopes: ALL, createdAt: 0 });
  const origin = "https://app.example.com";
  const vars = varsOf(w, target, { PAWL_CORS_ORIGIN: origin, PAWL_RATE_LIMIT: "4" });
  await using api = await deploy(await bundle("api", target), vars);
  const ask = () => fetch(`${api.url}/v1/agents`, { headers: { authorization: `Bearer ${token}`, origin } });
  // There is room for a quarter of a minute: one.
  const answers = [await ask(), await ask()];
  expect(answers.map(({ status }) => status)).toEqual([200, 429]);
  for (const { headers } of answers) expect(headers.get("access-control-allow-origin")).toBe(origin);
});
