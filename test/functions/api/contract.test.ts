import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { errorKinds, PawlError } from "../../../shared/errors/errors.ts";
import { scopeNames } from "../../../shared/web/scopes.ts";
import { ALL } from "../../support/http/api.ts";
import {
  bodySchema,
  type OpenApi,
  type Operation,
  operationsOf,
  resolved,
} from "../../support/http/document.ts";
import { type Schema, valuesOf } from "../../support/http/json-schema.ts";
import { type Answer, type Asked, webStage } from "../../support/http/web.ts";
import { stores, testNats } from "../../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** The API, and what it says of itself. One task is over, so that its events have an end. */
async function stage(kind: (typeof stores)[number]["kind"] = "nats-kv") {
  const s = await webStage(nats, kind);
  const all = await s.token("ann", ALL);
  const served = await s.ask("/v1/openapi.json", { token: all });
  expect(served.status).toBe(200);
  const document = served.json as unknown as OpenApi;
  const operations = operationsOf(document);
  await s.ask("/v1/tasks", { token: all, method: "POST", body: { agent: "tested", input: {}, id: "over" } });
  expect((await s.drain()).completed).toBe(1);
  /** Asks, and holds the answer against the document. */
  const ask = async (one: Operation, asked: Asked = {}, path = placed(one)): Promise<Answer> => {
    const answer = await s.ask(path, { method: one.method, ...asked });
    const where = `${one.method} ${path} ${answer.status} ${answer.text.slice(0, 200)}`;
    const listed = one.responses[answer.status];
    expect(Object.keys(one.responses), where).toContain(String(answer.status));
    const type = answer.headers.get("content-type")?.split(";")[0] ?? "";
    const schema = listed?.content[type]?.schema;
    expect(Object.keys(listed?.content ?? {}), where).toEqual([type]);
    if (type.endsWith("json")) {
      const whole = resolved(schema as Schema, document);
      expect(z.fromJSONSchema(whole).safeParse(answer.json).error, where).toBeUndefined();
    }
    if (answer.status >= 400) isProblem(answer, where);
    return answer;
  };
  return Object.assign(s, { all, document, operations, check: ask });
}

function isProblem({ status, headers, json }: Answer, where = ""): void {
  expect(headers.get("content-type"), where).toBe("application/problem+json");
  expect(json, where).toMatchObject({ type: "about:blank", status, detail: expect.stringMatching(/\S{3}/) });
  expect(Object.keys(errorKinds), where).toContain(json?.code);
}

function placed({ path }: Operation, id = "over"): string {
  return path.replace("{id}", id).replace("{name}", "go").replace("{agent}", "tested");
}

/** Pages for people are not in the document. */
const isApi = (path: string) => /^(\/health$|\/metrics$|\/v1\/)/.test(path);

test("the document and the app have the same routes", async () => {
  await using s = await stage();
  const registered = s.app.routes
    .filter(({ method, path }) => method !== "ALL" && isApi(path))
    .map(({ method, path }) => `${method} ${path.replaceAll(/:(\w+)/g, "{$1}")}`);
  const listed = s.operations.map(({ method, path }) => `${method} ${path}`);
  // A route is registered once more for the check of its token.
  expect([...new Set(registered)].toSorted()).toEqual(listed.toSorted());
  expect(listed.length).toBeGreaterThan(12);
  expect(s.operations.filter(({ path }) => !isApi(path))).toEqual([]);
});

/** What callers were told they can rely on changes on purpose only: `vitest run <this file> -u` takes a change over. */
test("the document is the one that was published", async () => {
  await using s = await stage();
  expect(s.document).toMatchSnapshot();
});

test("no reference in the document leads nowhere", async () => {
  await using s = await stage();
  const references = [...JSON.stringify(s.document).matchAll(/"\$ref":"([^"]*)"/g)].map(([, to]) => to);
  expect(references.length).toBeGreaterThan(0);
  for (const to of new Set(references)) {
    const found = (to as string)
      .slice(2)
      .split("/")
      .reduce<unknown>((at, key) => (at as Schema | undefined)?.[key], s.document);
    expect(found, to).toMatchObject({ type: "object" });
  }
});

test("every route but /health wants a token, and the scope that the document names", async () => {
  await using s = await stage();
  const open = s.operations.filter(({ security }) => security.length === 0);
  expect(open.map(({ path }) => path)).toEqual(["/health"]);
  for (const one of s.operations) {
    const [needed] = one.security;
    if (!needed) {
      expect((await s.check(one)).status).toBe(200);
      continue;
    }
    const body = bodySchema(one) && {};
    expect(await s.check(one, { body }), one.path).toMatchObject({
      status: 401,
      json: { code: "unauthorised" },
    });
    const lacking = await s.token(
      "ann",
      scopeNames.filter((scope) => !needed.bearer.includes(scope)),
    );
    const answer = await s.check(one, { body, token: lacking });
    // A document of everyone's: any token will do.
    if (needed.bearer.length === 0) expect(answer.status, one.path).toBe(200);
    else expect([answer.status, answer.json?.code], one.path).toEqual([403, "scope_missing"]);
    const enough = await s.token("ann", needed.bearer);
    const allowed = await s.check(one, { body, token: enough });
    expect([401, 403], one.path).not.toContain(allowed.status);
  }
});

test("every scope is needed by some route", async () => {
  await using s = await stage();
  const needed = s.operations.flatMap(({ security }) => security.flatMap(({ bearer }) => bearer));
  expect(new Set(needed)).toEqual(new Set(scopeNames));
});

test("what is asked for rightly is answered as the document says, also where there is no such task", async () => {
  await using s = await stage();
  for (const one of s.operations.filter(({ method }) => method === "GET")) {
    expect((await s.check(one, { token: s.all })).status, one.path).toBe(200);
    if (!one.path.includes("{id}")) continue;
    const nobody = await s.check(one, { token: s.all }, placed(one, "nobody"));
    expect(nobody).toMatchObject({ status: 404, json: { code: "task_unknown" } });
  }
  for (const one of s.operations.filter(({ path }) => path.includes("{id}") && path.split("/").length > 4)) {
    if (one.method !== "POST") continue;
    const nobody = await s.check(one, { token: s.all, body: {} }, placed(one, "nobody"));
    expect(nobody, one.path).toMatchObject({ status: 404, json: { code: "task_unknown" } });
  }
});

describe.each(stores.filter(({ kind }) => kind !== "firestore"))("$kind", ({ kind, here }) => {
  test.skipIf(!here)(
    "a body that the document allows is never malformed; one with more in it is",
    async () => {
      await using s = await stage(kind);
      const withBody = s.operations.filter(bodySchema);
      expect(withBody.length).toBeGreaterThanOrEqual(6);
      await s.submit({}, { id: "behind", meta: { owner: "ann" }, at: Date.now() + 3_600_000 });
      const { cursor } = (await s.ask("/v1/tasks?limit=1", { token: s.all })).json ?? {};
      expect(cursor).toEqual(expect.any(String));
      const given = { agent: fc.constant("tested"), cursor: fc.constant(cursor) };
      for (const one of withBody) {
        const seen = new Set<number>();
        const right = fc.tuple(valuesOf(bodySchema(one) as Schema, given), fc.uuid());
        const isRight = async ([body, id]: [unknown, string]) => {
          if (one.path.includes("{id}"))
            await s.submit({}, { id, meta: { owner: "ann" }, at: Date.now() + 3_600_000 });
          const asked = { token: s.all, body };
          const answer = await s.check(one, asked, placed(one, id));
          seen.add(answer.status);
          expect(answer.status, JSON.stringify([one.path, body, answer.json])).not.toBe(422);
          const more = { ...(body as object), surplus: 1 };
          const refused = await s.check(one, { ...asked, body: more }, placed(one, id));
          expect(refused).toMatchObject({ status: 422, json: { code: "input_invalid" } });
        };
        await fc.assert(fc.asyncProperty(right, isRight), { numRuns: kind === "nats-kv" ? 25 : 10 });
        // Only what failed is redriven, and only what is in doubt resolved.
        const isRefused = /\{id\}.(redrive|resolve)/.test(one.path);
        expect(
          [...seen].some((status) => (isRefused ? status === 409 : status < 300)),
          one.path,
        ).toBe(true);
      }
    },
  );
});

test("what the API refuses as malformed, the document does not allow", async () => {
  await using s = await stage();
  const task = { agent: "tested", input: {} };
  const labels = Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`l${i}`, ""]));
  for (const [end, body] of [
    ["tasks", { ...task, labels }],
    ["tasks", { ...task, labels: { a: 1 } }],
    ["tasks", { ...task, id: "k-1" }],
    ["tasks", { ...task, id: "__x__" }],
    ["tasks", { ...task, at: "tomorrow" }],
    ["tasks", { ...task, msgId: "a b" }],
    ["tasks", { ...task, orderingKey: "x".repeat(513) }],
    ["tasks", { ...task, input: [] }],
    ["tasks", { input: {} }],
    ["redrive", { fromScratch: "yes" }],
    ["redrive", { from: "" }],
    ["redrive", { from: "read#1", fromScratch: true }],
    ["tasks/cancel", { all: false }],
    ["tasks/cancel", { all: true, state: "lost" }],
    ["tasks/cancel", { agent: "tested", limit: 51 }],
    ["dead-letters/redrive", { error: "fatal", until: -1 }],
    ["resolve", {}],
    ["resolve", { happened: false, receipt: 1 }],
    ["signal", { name: "" }],
    ["signal", { name: "approval:go", value: { approved: true } }],
    ["{name}", { approved: "yes" }],
    ["{name}", { approved: true, note: "x".repeat(2_001) }],
  ] as const) {
    const one = s.operations.find(({ method, path }) => method === "POST" && path.endsWith(`/${end}`));
    const answer = await s.check(one as Operation, { token: s.all, body });
    const what = JSON.stringify([end, body]).slice(0, 100);
    expect([answer.status, answer.json?.code], what).toEqual([422, "input_invalid"]);
    const schema = z.fromJSONSchema(bodySchema(one as Operation) as Schema);
    expect(schema.safeParse(body).success, what).toBe(false);
  }
});

test("a parameter that the document does not allow is refused, value by value", async () => {
  await using s = await stage();
  let asked = 0;
  for (const one of s.operations) {
    const known = one.parameters.filter((parameter) => parameter.in === "query");
    if (known.length === 0) continue;
    const wrong = known.map(({ name, schema: { maxLength, maximum } }) => {
      if (maxLength !== undefined) return [name, "x".repeat(Number(maxLength) + 1)];
      return [name, maximum === undefined ? "nowhere" : String(Number(maximum) + 1)];
    });
    for (const [name, value] of [...wrong, ["surplus", "1"]]) {
      const answer = await s.check(one, { token: s.all }, `${placed(one)}?${name}=${value}`);
      expect([answer.status, answer.json?.code], `${one.path} ${name}`).toEqual([422, "input_invalid"]);
      asked++;
    }
  }
  expect(asked).toBe(7 + 6 + 7 + 3 + 2);
  const approval = s.operations.find(({ path }) => path.endsWith("/{name}")) as Operation;
  const { schema } = approval.parameters.find(({ name }) => name === "name") as Operation["parameters"][0];
  for (const [name, status] of [
    ["x".repeat(Number(schema.maxLength)), 409],
    ["x".repeat(Number(schema.maxLength) + 1), 422],
  ] as const) {
    const path = placed(approval).replace("/go", `/${name}`);
    expect((await s.check(approval, { token: s.all, body: { approved: true } }, path)).status).toBe(status);
  }
});

test("what is not there is problem details too, whatever the method", async () => {
  await using s = await stage();
  for (const path of [
    "/no-such-path",
    "/v1",
    "/v1/nowhere",
    "/v1/tasks/over/nowhere",
    "/metrics/x",
    "/health/x",
  ])
    for (const method of ["GET", "POST", "PUT", "DELETE", "PATCH"]) {
      const answer = await s.ask(path, { method, token: s.all });
      expect([answer.status, answer.json?.code], `${method} ${path}`).toEqual([404, "not_found"]);
      isProblem(answer);
    }
  const undone = await s.ask("/v1/tasks/over", { method: "DELETE", token: s.all });
  expect(undone.status).toBe(404);
});

test("where NATS or the store is away, every route says so with a status that is listed", async () => {
  await using s = await stage();
  const open = () => Promise.reject(new PawlError("bus_unavailable", "NATS at 10.0.0.7 can't be reached"));
  for (const one of s.operations) {
    const answer = await s.check(one, { token: s.all, body: bodySchema(one) && {}, env: { open } });
    expect(answer.status, one.path).toBe(503);
    // Nobody knows yet whether the token is one: where the servers are is not for everyone.
    expect(answer.text).not.toContain("10.0.0.7");
    if (one.path !== "/health") expect(answer.headers.get("retry-after")).toBe("60");
  }
  const broken = () => Promise.reject(new Error("a stack trace"));
  for (const one of s.operations.filter(({ path }) => path !== "/health")) {
    const answer = await s.check(one, { token: s.all, body: bodySchema(one) && {}, env: { open: broken } });
    expect([answer.status, answer.json?.code]).toEqual([500, "unexpected"]);
    expect(answer.text).not.toContain("stack trace");
  }
});
