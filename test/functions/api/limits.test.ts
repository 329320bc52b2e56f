import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as z from "zod";
import { configFrom } from "../../../functions/wiring/config.ts";
import { boundsOf } from "../../../infra/input-bounds.ts";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import type { JsonObject } from "../../../shared/values/json.ts";
import { createApp } from "../../../shared/web/app.ts";
import { rateLimiter } from "../../../shared/web/rate-limit.ts";
import { ALL } from "../../support/http/api.ts";
import { read, webStage } from "../../support/http/web.ts";
import { testNats } from "../../support/servers/stores.ts";
import { until } from "../../support/time/until.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

describe("the limiter", () => {
  test("lets a quarter of a minute's requests through at once, and then as many as come in by the minute", () => {
    let now = 1_000_000;
    const wait = rateLimiter(() => now);
    const passed = (count: number) =>
      Array.from({ length: count }, () => wait("a", 60)).filter((s) => s === 0);
    expect(passed(20)).toHaveLength(15);
    expect(wait("a", 60)).toBe(1);
    expect(wait("b", 60)).toBe(0);
    now += 999;
    expect(wait("a", 60)).toBe(1);
    now += 1;
    expect(wait("a", 60)).toBe(0);
    expect(wait("a", 60)).toBe(1);
    // It fills up, and not over.
    now += 3_600_000;
    expect(passed(100)).toHaveLength(15);
  });

  test("never lets more through than it says, and says rightly how long to wait", () => {
    const pauses = fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 1, maxLength: 200 });
    fc.assert(
      fc.property(pauses, fc.integer({ min: 1, max: 2_000 }), (steps, perMinute) => {
        let now = 0;
        const wait = rateLimiter(() => now);
        let passed = 0;
        for (const step of steps) {
          now += step;
          if (wait("a", perMinute) === 0) passed++;
        }
        const room = Math.ceil(perMinute / 4);
        expect(passed).toBeLessThanOrEqual(room + (now * perMinute) / 60_000 + 1e-6);
        const seconds = wait("a", perMinute);
        now += seconds * 1_000;
        if (seconds > 0) expect(wait("a", perMinute)).toBe(0);
      }),
    );
  });
});

test("a token that asks too often is told how long to wait; others are not held up, nor is it after that", async () => {
  await using s = await webStage(nats);
  const [busy, calm] = [await s.token("ann"), await s.token("ann")];
  const env = { rateLimit: 120 };
  const asked = (path = "/v1/tasks") => s.ask(path, { token: busy, env });
  // Thirty at once, and two more in each second that answering takes.
  const crowd = Array.from({ length: 120 }, (_, i) => asked(i % 2 ? "/v1/tasks" : "/metrics"));
  const answers = await Promise.all(crowd);
  const slower = answers.filter(({ status }) => status === 429);
  expect(answers.filter(({ status }) => status === 200).length).toBeGreaterThanOrEqual(30);
  for (const which of [0, 1])
    expect(answers.filter(({ status }, i) => status === 429 && i % 2 === which).length).toBeGreaterThan(0);
  for (const { json, headers } of slower) {
    expect(json).toMatchObject({
      status: 429,
      code: "too_many_requests",
      detail: expect.stringMatching(/1 s/),
    });
    expect([headers.get("retry-after"), headers.get("content-type")]).toEqual([
      "1",
      "application/problem+json",
    ]);
  }
  expect((await s.ask("/v1/tasks", { token: calm, env })).status).toBe(200);
  await until("it may ask again", async () => (await asked()).status === 200);
});

test("guesses are counted together, however many tokens are tried, and stop nobody who is known", async () => {
  await using s = await webStage(nats);
  const known = await s.token("ann");
  const ask = async (token: string) => s.ask("/v1/tasks", { token, env: { rateLimit: 8 } });
  const guess = () => ask(`pawl_${randomBytes(32).toString("base64url")}`);
  expect((await ask(known)).status).toBe(200);
  const answers = [await guess(), await guess(), await guess(), await guess()];
  expect(answers.map(({ status }) => status)).toEqual([401, 401, 429, 429]);
  // Eight a minute, less what has passed since the second.
  expect(answers[2]?.headers.get("retry-after")).toMatch(/^[1-8]$/);
  expect((await ask(known)).status).toBe(200);
  expect((await s.ask("/health", { env: { rateLimit: 8 } })).status).toBe(200);
});

test("a body at the limit is read, and one byte more is not, whether or not its length was said", async () => {
  await using s = await webStage(nats);
  const token = await s.token("ann");
  const most = s.deps.settings.inputLimit + 64 * 1024;
  const text = JSON.stringify({ agent: "tested", input: { n: 1 } });
  const sized = (bytes: number) => text + " ".repeat(bytes - text.length);
  const said = (bytes: number) =>
    s.ask("/v1/tasks", {
      token,
      method: "POST",
      body: sized(bytes),
      headers: { "content-length": String(bytes) },
    });
  const unsaid = async (bytes: number) => {
    const pieces = sized(bytes).match(/.{1,10000}/gs) as string[];
    const body = ReadableStream.from(pieces.map((piece) => new TextEncoder().encode(piece)));
    const init = {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      body,
      duplex: "half",
    } as const;
    return read(await s.app.request("/v1/tasks", init, { open: async () => s.deps, log: s.deps.log }));
  };
  for (const send of [said, unsaid]) {
    expect((await send(most)).status).toBe(201);
    expect(await send(most + 1)).toMatchObject({
      status: 413,
      json: { code: "input_too_large", status: 413 },
    });
  }
  const boss = await s.token("boss", ALL);
  await s.submit({}, { id: "t" });
  const signal = { name: "n", value: "x".repeat(most) };
  const told = await s.ask("/v1/tasks/t/signal", { token: boss, method: "POST", body: signal });
  expect(told).toMatchObject({ status: 413, json: { code: "input_too_large" } });
  expect(s.deps.logged.filter(({ event }) => event === "function.unexpected")).toEqual([]);
});

describe("browsers", () => {
  const origin = "https://app.example.com";
  const allowed = "access-control-allow-origin";
  const preflight = {
    origin,
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization",
  };

  test("no origin may call unless one is set, and then only that one", async () => {
    await using s = await webStage(nats);
    const token = await s.token("ann");
    for (const [env, from] of [
      [{}, origin],
      [{ corsOrigin: origin }, "https://evil.example.com"],
      [{ corsOrigin: origin }, `${origin}.evil.example.com`],
      [{ corsOrigin: origin }, "null"],
    ] as const) {
      const answer = await s.ask("/v1/tasks", { token, headers: { origin: from }, env });
      expect([answer.status, answer.headers.get(allowed)], from).toEqual([200, null]);
      const asked = await s.ask("/v1/tasks", {
        method: "OPTIONS",
        headers: { ...preflight, origin: from },
        env,
      });
      expect([asked.status, asked.headers.get(allowed)], from).toEqual([401, null]);
    }
  });

  test("the one that is set may, with every header that the API takes, and reads errors as well as answers", async () => {
    await using s = await webStage(nats);
    const token = await s.token("ann", ["read"]);
    const env = { corsOrigin: origin };
    const asked = await s.ask("/v1/tasks", { method: "OPTIONS", headers: preflight, env });
    expect([asked.status, asked.text, asked.headers.get(allowed)]).toEqual([204, "", origin]);
    const may = (asked.headers.get("access-control-allow-headers") ?? "").split(/, */);
    expect(may.toSorted()).toEqual(["authorization", "content-type", "idempotency-key", "last-event-id"]);
    expect(asked.headers.get("access-control-allow-methods")).toBe("GET, POST");
    for (const [status, path, more] of [
      [200, "/v1/tasks", { token }],
      [200, "/health", {}],
      [401, "/v1/tasks", {}],
      [403, "/v1/tasks", { token, method: "POST", body: {} }],
      [404, "/v1/tasks/nobody", { token }],
      [404, "/nowhere", { token }],
      [422, "/v1/tasks?limit=x", { token }],
    ] as const) {
      const answer = await s.ask(path, { ...more, headers: { origin }, env });
      expect([answer.status, answer.headers.get(allowed)], path).toEqual([status, origin]);
      expect(answer.headers.get("vary"), path).toMatch(/origin/i);
      expect(answer.headers.get("access-control-allow-credentials")).toBeNull();
    }
    const slower = async () =>
      s.ask("/v1/tasks", { token, headers: { origin }, env: { ...env, rateLimit: 1 } });
    const [, second] = [await slower(), await slower()];
    expect([second.status, second.headers.get(allowed)]).toEqual([429, origin]);
    expect(second.headers.get("access-control-expose-headers")).toMatch(/retry-after/);
  });
});

describe("settings", () => {
  const env = { NATS_URL: "nats://127.0.0.1:4222", PAWL_STORE: "nats-kv" };
  const url = "https://example.com/hook";
  const secret = "0123456789abcdef";

  test("of webhook, origin and rate are taken as they are", () => {
    expect(configFrom(env)).not.toHaveProperty("webhook");
    const all = {
      PAWL_WEBHOOK_URL: url,
      PAWL_WEBHOOK_SECRET: secret,
      PAWL_CORS_ORIGIN: "https://a.example:8443",
    };
    expect(configFrom({ ...env, ...all, PAWL_RATE_LIMIT: "5" })).toMatchObject({
      webhook: { url, secret },
      corsOrigin: "https://a.example:8443",
      rateLimit: 5,
    });
  });

  test("of the seal are keys, the newest first", () => {
    expect(configFrom(env).sealKeys).toBeUndefined();
    const PAWL_SEAL_KEY = `${secret}-newer, ${secret},none`;
    expect(configFrom({ ...env, PAWL_SEAL_KEY }).sealKeys).toEqual([`${secret}-newer`, secret, "none"]);
  });

  test.each([
    [{ PAWL_WEBHOOK_URL: url }, /PAWL_WEBHOOK_URL and PAWL_WEBHOOK_SECRET belong together/],
    [{ PAWL_WEBHOOK_SECRET: secret }, /PAWL_WEBHOOK_URL and PAWL_WEBHOOK_SECRET belong together/],
    [{ PAWL_WEBHOOK_URL: "ftp://x", PAWL_WEBHOOK_SECRET: secret }, /PAWL_WEBHOOK_URL is "ftp:\/\/x"/],
    [{ PAWL_WEBHOOK_URL: "https://", PAWL_WEBHOOK_SECRET: secret }, /PAWL_WEBHOOK_URL is "https:\/\/"/],
    [{ PAWL_WEBHOOK_URL: "http://[x", PAWL_WEBHOOK_SECRET: secret }, /PAWL_WEBHOOK_URL is "http:\/\/\[x"/],
    [{ PAWL_WEBHOOK_URL: url, PAWL_WEBHOOK_SECRET: "short" }, /PAWL_WEBHOOK_SECRET has 5 characters/],
    [
      { PAWL_WEBHOOK_URL: url, PAWL_WEBHOOK_SECRET: "whsec_***not-base64***" },
      /PAWL_WEBHOOK_SECRET .* base64/,
    ],
    [{ PAWL_SEAL_KEY: "short" }, /Key 1 of PAWL_SEAL_KEY has 5 characters/],
    [{ PAWL_SEAL_KEY: `${secret},short` }, /Key 2 of PAWL_SEAL_KEY has 5 characters/],
    [{ PAWL_SEAL_KEY: `none,${secret}` }, /Key 1 of PAWL_SEAL_KEY has 4 characters/],
    [{ PAWL_CORS_ORIGIN: "*" }, /PAWL_CORS_ORIGIN is "\*"; it should be one origin/],
    [{ PAWL_CORS_ORIGIN: "https://a.example/" }, /PAWL_CORS_ORIGIN is "https:\/\/a.example\/"/],
    [{ PAWL_CORS_ORIGIN: "https://a.example https://b.example" }, /PAWL_CORS_ORIGIN is /],
    // No browser ever says these: it writes them in small letters, and leaves out what goes without saying.
    [{ PAWL_CORS_ORIGIN: "https://A.example" }, /PAWL_CORS_ORIGIN is "https:\/\/A.example"/],
    [{ PAWL_CORS_ORIGIN: "https://a.example:443" }, /PAWL_CORS_ORIGIN is "https:\/\/a.example:443"/],
    [{ PAWL_RATE_LIMIT: "0" }, /PAWL_RATE_LIMIT is "0"; it should be a number of requests a minute/],
    [{ PAWL_RATE_LIMIT: "-1" }, /PAWL_RATE_LIMIT is "-1"/],
    [{ PAWL_RATE_LIMIT: "1.5" }, /PAWL_RATE_LIMIT is "1.5"/],
    [{ PAWL_RATE_LIMIT: "many" }, /PAWL_RATE_LIMIT is "many"/],
    [{ PAWL_RATE_LIMITS: "1" }, /PAWL_RATE_LIMITS is not a setting of Pawl/],
  ])("that are wrong are named: %j", (wrong, message) => {
    const refused = () => configFrom({ ...env, ...wrong });
    expect(refused).toThrow(
      expect.objectContaining({ code: "setting_invalid", message: expect.stringMatching(message) }),
    );
    expect(refused).not.toThrow(/0123456789abcdef/);
  });
});

test("where only JSON Schema is known, what is surely wrong is refused at the door, by the field's name", async () => {
  await using s = await webStage(nats);
  const token = await s.token("ann");
  const schema = z.object({
    city: z.string().min(1),
    days: z.number().int().max(14).default(3),
    who: z.object({ mail: z.email() }).optional(),
  });
  const submit = async (input: unknown, inputBounds = boundsOf(schema) as JsonObject) => {
    const app = createApp({ agents: [{ name: "tested", lanes: 1, inputBounds }] });
    const init = {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify({ agent: "tested", input }),
    };
    return read(await app.request("/v1/tasks", init, { open: async () => s.deps, log: s.deps.log }));
  };
  for (const [input, field] of [
    [{}, "city"],
    [{ city: "" }, "city"],
    [{ city: "x", days: 15 }, "days"],
    [{ city: "x", days: "3" }, "days"],
    [{ city: "x", who: { mail: 7 } }, "who.mail"],
  ] as const) {
    const answer = await submit(input);
    expect([answer.status, answer.json?.code], field).toEqual([422, "input_invalid"]);
    expect(answer.json?.detail).toMatch(new RegExp(`^The input .*\\b${field}: `));
  }
  // As the agent's own schema takes them: what it does not know it leaves out, what has a default may be missing.
  for (const input of [
    { city: "x" },
    { city: "x", days: 14, more: true, who: { mail: "a@b.co" } },
    // That this is no address, only the schema's own code knows.
    { city: "x", who: { mail: "nobody" } },
  ])
    expect((await submit(input)).status, JSON.stringify(input)).toBe(201);
  // A schema that can't be read is no reason to refuse everything: the agent's own has the last word.
  const odd = { type: "object", properties: { a: { type: "string", pattern: "(" } } };
  expect((await submit({ a: "b" }, odd)).status).toBe(201);
});
