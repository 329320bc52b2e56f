import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { routes } from "../../../shared/web/api/routes.ts";
import { revokeToken } from "../../../shared/web/tokens.ts";
import { ALL, apiStage } from "../../support/http/api.ts";
import { testNats } from "../../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

test("every route but /health wants a token, and answers wrong requests with problem details", async () => {
  await using s = await apiStage(nats);
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
  await using s = await apiStage(nats);
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
  await using s = await apiStage(nats);
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
  await using s = await apiStage(nats);
  const boss = await s.token("boss", ALL);
  const { id } = (await s.call(boss, "POST", "/v1/tasks", { agent: "tested", input: {} })).body as {
    id: string;
  };
  for (const name of ["approval:publish", "child:x", "effect post#1 try 1"])
    expect(
      (await s.call(boss, "POST", `/v1/tasks/${id}/signal`, { name, value: { approved: true } })).status,
    ).toBe(422);
  const value = "x".repeat(500 * 1024);
  expect(
    (await s.call(boss, "POST", `/v1/tasks/${id}/signal`, { name: "n", value, early: true })).status,
  ).toBe(200);
  expect(
    await s.call(boss, "POST", `/v1/tasks/${id}/signal`, { name: "n", value, early: true }),
  ).toMatchObject({
    status: 409,
    body: { code: "signal_refused" },
  });
});

test("a token that was revoked is none", async () => {
  await using s = await apiStage(nats);
  const token = await s.token("ann");
  expect((await s.call(token, "GET", "/v1/tasks")).status).toBe(200);
  expect(await revokeToken(s.deps.store, token)).toMatchObject({ owner: "ann" });
  expect((await s.call(token, "GET", "/v1/tasks")).status).toBe(401);
  expect(await revokeToken(s.deps.store, token)).toBeUndefined();
});

test("a body over the limit is refused before it is read as a task", async () => {
  await using s = await apiStage(nats);
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
  await using s = await apiStage(nats);
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
});
