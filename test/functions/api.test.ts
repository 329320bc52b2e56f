import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { TARGETS } from "../../infra/build/targets.ts";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { queueOf } from "../../shared/journey/dispatch.ts";
import { createApp } from "../../shared/web/app.ts";
import { routes } from "../../shared/web/openapi.ts";
import { createToken, revokeToken, type Scope } from "../../shared/web/tokens.ts";
import { agentOf, bench } from "../support/bench.ts";
import { builds, deploy, varsOf } from "../support/platforms.ts";
import { stores, testNats, wired, world } from "../support/stores.ts";
import { until } from "../support/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const ALL: readonly Scope[] = ["submit", "read", "operate"];

/** The API over real servers, in this process. */
async function stage(kind: (typeof stores)[number]["kind"] = "nats-kv", run: () => unknown = () => "done") {
  const b = await bench(nats, kind, agentOf(run, { attempts: 1 }));
  const app = createApp({
    agents: [
      { name: "tested", lanes: 1 },
      { name: "other", lanes: 1 },
    ],
  });
  const token = (owner: string, scopes: readonly Scope[] = ["submit", "read"], agents?: string[]) =>
    createToken(b.deps.store, { owner, scopes, createdAt: Date.now(), ...(agents && { agents }) });
  const call = async (
    text: string | undefined,
    method: string,
    path: string,
    body?: unknown,
    headers = {},
  ) => {
    const init = {
      method,
      headers: { ...(text !== undefined && { authorization: `Bearer ${text}` }), ...headers },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    };
    const response = await app.request(path, init, { open: async () => b.deps, log: b.deps.log });
    const answer = (await response.json().catch(() => undefined)) as Record<string, unknown>;
    return { status: response.status, body: answer, headers: response.headers };
  };
  return Object.assign(b, { app, token, call });
}

describe.each(stores)("$kind", ({ kind, here }) => {
  test.skipIf(!here)("a task from submit to result, and the same key is the same task", async () => {
    await using s = await stage(kind);
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

  test.skipIf(!here)("twenty first requests at once with one key are one task", async () => {
    await using s = await stage(kind);
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

test("a task for later is dispatched when it is due, not before", async () => {
  await using s = await stage();
  const token = await s.token("ann");
  const at = new Date(Date.now() + 1_500).toISOString();
  const made = await s.call(token, "POST", "/v1/tasks", { agent: "tested", input: {}, at });
  expect(made.body).toMatchObject({ kind: "accepted", state: "scheduled" });
  await s.drain();
  expect((await s.task(made.body.id as string)).state).toBe("scheduled");
  await until("it is done", async () => {
    await s.drain();
    return (await s.task(made.body.id as string)).state === "completed";
  });
  expect(await s.task(made.body.id as string)).toMatchObject({ dispatches: 1, attempts: 0 });
});

test("what operators do: redrive, cancel, signal, approve, resolve; each needs the scope", async () => {
  await using s = await stage("nats-kv", () => {
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
  expect(await s.call(boss, "POST", `/v1/tasks/${id}/redrive`, { fromScratch: true })).toMatchObject({
    status: 200,
    body: { id, state: "dispatched" },
  });
  expect(await s.call(boss, "POST", `/v1/tasks/${id}/approvals/go`, { approved: true })).toMatchObject({
    status: 200,
  });
  expect(await s.call(boss, "POST", `/v1/tasks/${id}/signal`, { name: "n", value: [1] })).toMatchObject({
    status: 200,
  });
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
  await using s = await stage();
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

test("every route but /health wants a token, and answers wrong requests with problem details", async () => {
  await using s = await stage();
  const token = await s.token("ann", ALL);
  for (const { method, path, body } of routes) {
    const at = path.replace("{id}", "nobody").replace("{name}", "n");
    if (path === "/health") {
      expect((await s.call(undefined, "GET", at)).status).toBe(200);
      continue;
    }
    for (const wrong of [undefined, "", "pawl_short", `pawl_${"x".repeat(43)}`]) {
      const answer = await s.call(wrong, method.toUpperCase(), at, body && {});
      expect([answer.status, answer.body.code], path).toEqual([401, "unauthorised"]);
    }
    if (!body) continue;
    const broken = await s.call(token, method.toUpperCase(), at, "{oops");
    expect([404, 422], path).toContain(broken.status);
    expect(broken.headers.get("content-type")).toBe("application/problem+json");
  }
  expect((await s.call(token, "GET", "/nowhere")).body).toMatchObject({ code: "not_found" });
  const spec = (await s.call(token, "GET", "/v1/openapi.json")).body as { paths: Record<string, object> };
  for (const { path, method } of routes) expect(spec.paths[path], path).toHaveProperty(method);
});

test("an id is its owner's: another gets a conflict that says nothing, and no made-up id can be taken", async () => {
  await using s = await stage();
  const ann = await s.token("ann");
  const bob = await s.token("bob");
  const body = { agent: "tested", input: {}, id: "mine" };
  expect((await s.call(ann, "POST", "/v1/tasks", body)).status).toBe(201);
  expect((await s.call(ann, "POST", "/v1/tasks", body)).status).toBe(200);
  for (const other of [body, { ...body, agent: "other" }]) {
    const answer = await s.call(bob, "POST", "/v1/tasks", other);
    expect([answer.status, answer.body.detail]).toEqual([
      409,
      "The id belongs to other work. Use another one",
    ]);
  }
  for (const id of ["k-abc", "c-abc", "stray-x", "__x__", "a.b", ""])
    expect((await s.call(bob, "POST", "/v1/tasks", { ...body, id })).status, id).toBe(422);
});

test("pages hold what the token may see, and their cursors name nothing else", async () => {
  await using s = await stage();
  const ann = await s.token("ann");
  const bob = await s.token("bob");
  for (const [token, id] of [
    [ann, "a1"],
    [bob, "b1"],
    [ann, "a2"],
    [bob, "b2"],
    [ann, "a3"],
  ] as const)
    await s.call(token, "POST", "/v1/tasks", { agent: "tested", input: { of: id }, id });
  const seen: string[] = [];
  for (let cursor = "", pages = 0; pages === 0 || cursor; pages++) {
    const page = await s.call(bob, "GET", `/v1/tasks?limit=1${cursor && `&cursor=${cursor}`}`);
    seen.push(...(page.body.tasks as { id: string }[]).map(({ id }) => id));
    cursor = (page.body.cursor as string) ?? "";
    expect(cursor).not.toMatch(/a\d/);
    expect(JSON.stringify(page.body)).not.toContain('"of"');
    expect(pages).toBeLessThan(5);
  }
  expect(seen.toSorted()).toEqual(["b1", "b2"]);
});

test("an event can't pass for an approval, and a signal leaves room for the result", async () => {
  await using s = await stage();
  const boss = await s.token("boss", ALL);
  const { id } = (await s.call(boss, "POST", "/v1/tasks", { agent: "tested", input: {} })).body as {
    id: string;
  };
  for (const name of ["approval:publish", "child:x", "effect post#1 try 1"])
    expect(
      (await s.call(boss, "POST", `/v1/tasks/${id}/signal`, { name, value: { approved: true } })).status,
    ).toBe(422);
  const value = "x".repeat(500 * 1024);
  expect((await s.call(boss, "POST", `/v1/tasks/${id}/signal`, { name: "n", value })).status).toBe(200);
  expect(await s.call(boss, "POST", `/v1/tasks/${id}/signal`, { name: "n", value })).toMatchObject({
    status: 409,
    body: { code: "signal_refused" },
  });
});

test("a token that was revoked is none", async () => {
  await using s = await stage();
  const token = await s.token("ann");
  expect((await s.call(token, "GET", "/v1/tasks")).status).toBe(200);
  expect(await revokeToken(s.deps.store, token)).toBe(true);
  expect((await s.call(token, "GET", "/v1/tasks")).status).toBe(401);
  expect(await revokeToken(s.deps.store, token)).toBe(false);
});

test("a body over the limit is refused before it is read as a task", async () => {
  await using s = await stage();
  const token = await s.token("ann");
  const input = { text: "x".repeat(600 * 1024) };
  expect(await s.call(token, "POST", "/v1/tasks", { agent: "tested", input })).toMatchObject({ status: 413 });
  const close = { text: "x".repeat(530 * 1024) };
  expect(await s.call(token, "POST", "/v1/tasks", { agent: "tested", input: close })).toMatchObject({
    status: 413,
    body: { code: "input_too_large" },
  });
});

test("fuzzed bodies, ids, cursors and headers: never a 500, never another owner's task", async () => {
  await using s = await stage();
  const token = await s.token("ann");
  const secret = await s.token("bob");
  await s.call(secret, "POST", "/v1/tasks", { agent: "tested", input: { secret: "of bob" }, id: "bobs" });
  const text = fc.string({ unit: "binary", maxLength: 60 });
  const odd = fc.oneof(
    text,
    fc.constantFrom("bobs", "../bobs", "%00", "__proto__", "k-", "\u202e", "' OR 1=1"),
  );
  const body = fc.oneof(
    fc.json(),
    text,
    fc
      .record(
        { agent: odd, input: fc.jsonValue(), id: odd, at: odd, labels: fc.jsonValue() },
        { requiredKeys: [] },
      )
      .map((one) => JSON.stringify(one)),
  );
  const request = fc.record({ place: fc.constantFrom("submit", "get", "list", "key"), odd, body });
  await fc.assert(
    fc.asyncProperty(request, async ({ place, odd: value, body: sent }) => {
      const path = encodeURIComponent(value.toWellFormed());
      const header = [...value].map((char) => (/[\x20-\x7e]/.test(char) ? char : "?")).join("");
      const answer =
        place === "submit"
          ? await s.call(token, "POST", "/v1/tasks", sent)
          : place === "key"
            ? await s.call(token, "POST", "/v1/tasks", sent, { "idempotency-key": header })
            : place === "get"
              ? await s.call(token, "GET", `/v1/tasks/${path}`)
              : await s.call(token, "GET", `/v1/tasks?cursor=${path}&state=${path}&limit=${path}`);
      expect(answer.status, JSON.stringify(answer.body)).toBeLessThan(500);
      expect(JSON.stringify(answer.body ?? "")).not.toContain("of bob");
    }),
    { numRuns: 400 },
  );
}, 120_000);

test.each(TARGETS)("the API as deployed on %s", async (target) => {
  using out = builds();
  const w = world(nats, "nats-kv");
  await using deps = await wired(w.config);
  await deps.bus.ensure(queueOf({ agent: "walker", lane: 0 }, deps));
  const token = await createToken(deps.store, { owner: "ann", scopes: ALL, createdAt: 0 });
  await using api = await deploy(await out.build("api", target), varsOf(w, target));
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
