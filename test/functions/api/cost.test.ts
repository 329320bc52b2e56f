import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { LocalNats } from "../../../infra/local/nats-server.ts";
import { PawlError } from "../../../shared/errors/errors.ts";
import { createApp } from "../../../shared/web/app.ts";
import { rateLimiter } from "../../../shared/web/rate-limit.ts";
import { webStage } from "../../support/http/web.ts";
import { testNats } from "../../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

/** 500 KB of [0,0,…], which no task can have as its input. */
const ZEROS = `[${"0,".repeat(249_999)}0]`;
const sized = (body: string) => ({ "content-length": String(body.length) });

describe("the limiter", () => {
  test("takes what something costs, and lets it through with as much left, or half of the room", () => {
    let now = 0;
    const wait = rateLimiter(() => now);
    // 600 a minute: room for 150.
    expect(wait("a", 600, 100)).toBe(0);
    expect(wait("a", 600, 51)).toBe(1);
    expect(wait("a", 600, 50)).toBe(0);
    expect(wait("a", 600)).toBe(1);
    now += 5_000;
    expect(wait("a", 600, 50)).toBe(0);
    // More than there is room for: a bucket that is half full lets it through, and owes the rest.
    now += 60_000;
    expect(wait("a", 600, 1_000)).toBe(0);
    expect(wait("a", 600)).toBe(86);
    now += 85_000;
    expect(wait("a", 600)).toBe(1);
    now += 1_000;
    expect(wait("a", 600)).toBe(0);
  });

  test("what is owed is taken in any case", () => {
    const wait = rateLimiter(() => 0);
    expect(wait("a", 60, 30, "owed")).toBe(0);
    expect(wait("a", 60)).toBe(16);
  });
});

/** Room for two requests at once; a body of 500 KB costs thirty more, and leaves a debt of four minutes: more than a test takes. */
const env = { rateLimit: 8 };

test("after a large body a client gets 429, and nobody parses what it sends; others are not held up", async () => {
  await using s = await webStage(nats);
  const clients = await Promise.all(["a", "b", "c", "d"].map((owner) => s.token(owner)));
  const calm = await s.token("calm");
  const send = (token: string, body: string) =>
    s.ask("/v1/tasks", { token, method: "POST", body, headers: sized(body), env });
  for (const token of clients) {
    expect((await send(token, ZEROS)).status).toBe(422);
    for (let i = 0; i < 2; i++) {
      // What is no JSON would be 422: it was not read as such.
      const unread = await send(token, `${ZEROS}]`);
      expect(unread).toMatchObject({ status: 429, json: { code: "too_many_requests" } });
      expect(Number(unread.headers.get("retry-after"))).toBeGreaterThan(5);
    }
  }
  expect((await s.ask("/v1/tasks", { token: calm, env })).status).toBe(200);
});

test("who may still ask, but has too little left for a large body, is refused before it is parsed", async () => {
  await using s = await webStage(nats);
  for (const headers of [sized(`${ZEROS}]`), {}]) {
    const token = await s.token("ann");
    expect((await s.ask("/v1/tasks", { token, env })).status).toBe(200);
    const large = await s.ask("/v1/tasks", { token, method: "POST", body: `${ZEROS}]`, headers, env });
    expect(large).toMatchObject({ status: 429, json: { code: "too_many_requests" } });
  }
});

test("a body that does not say its length is paid for before it is parsed", async () => {
  await using s = await webStage(nats);
  const token = await s.token("ann");
  const send = () => s.ask("/v1/tasks", { token, method: "POST", body: `${ZEROS}]`, env });
  expect((await send()).status).toBe(422);
  expect((await send()).status).toBe(429);
});

test("a body that says it is over the limit is refused unread, for the price of its request", async () => {
  await using s = await webStage(nats);
  const token = await s.token("ann");
  for (let i = 0; i < 10; i++) {
    const headers = { "content-length": "90000000" };
    const answer = await s.ask("/v1/tasks", {
      token,
      method: "POST",
      body: "{}",
      headers,
      env: { rateLimit: 600 },
    });
    expect(answer.status).toBe(413);
  }
});

test("a list costs by the documents that it looks at", async () => {
  await using s = await webStage(nats);
  const token = await s.token("ann");
  const { list } = s.deps.store;
  const scanning = {
    ...s.deps,
    store: {
      ...s.deps.store,
      list: async (...asked: Parameters<typeof list>) => ({ ...(await list(...asked)), looked: 10_000 }),
    },
  };
  const ask = () => s.ask("/v1/tasks", { token, env: { ...env, open: async () => scanning } });
  expect((await ask()).status).toBe(200);
  const second = await ask();
  expect(second.status).toBe(429);
  expect(Number(second.headers.get("retry-after"))).toBeGreaterThan(60);
});

describe("/health", () => {
  const agents = [{ name: "tested", lanes: 1 }];

  test("a crowd of strangers costs the servers one look in five seconds", async () => {
    await using s = await webStage(nats);
    const { putRecord, getRecord } = s.deps.store;
    const asked = { opened: 0, reads: 0, writes: 0 };
    const store = {
      ...s.deps.store,
      getRecord: (name: string) => {
        asked.reads++;
        return getRecord(name);
      },
      putRecord: (...args: Parameters<typeof putRecord>) => {
        asked.writes++;
        return putRecord(...args);
      },
    };
    const open = async () => {
      asked.opened++;
      return { ...s.deps, store };
    };
    const crowd = Array.from({ length: 300 }, () => s.ask("/health", { env: { open } }));
    const answers = await Promise.all(crowd);
    expect(answers.every(({ status, text }) => status === 200 && text === '{"ok":true}')).toBe(true);
    expect(asked).toEqual({ opened: 1, reads: 1, writes: 1 });
  });

  test("says when the store takes no write, though it answers; why is told to who has a token", async () => {
    await using s = await webStage(nats);
    const full = async () => {
      throw new Error("no space left at 10.0.0.7");
    };
    const open = async () => ({ ...s.deps, store: { ...s.deps.store, putRecord: full } });
    const app = createApp({ agents });
    const bindings = { open, log: s.deps.log };
    const told = await s.readAnswer(await app.request("/health", {}, bindings));
    expect(told).toMatchObject({ status: 503, json: { code: "unhealthy" } });
    expect(told.text).not.toContain("10.0.0.7");
    expect(
      s.deps.logged.some(
        ({ event, fields }) => event === "health.failed" && /no space/.test(String(fields.reason)),
      ),
    ).toBe(true);
  });

  test("says when JetStream does not answer, though the store does", async () => {
    await using s = await webStage(nats);
    const usage = async () => {
      throw new PawlError("bus_refused", "JetStream is off on this server");
    };
    const open = async () => ({ ...s.deps, bus: { ...s.deps.bus, usage } });
    expect(await s.ask("/health", { env: { open } })).toMatchObject({
      status: 503,
      json: { code: "unhealthy" },
    });
  });

  test("names agents whose queue is nearly full to who has a token; others' submits are taken", async () => {
    await using s = await webStage(nats);
    const token = await s.token("ann");
    const full = async ({ agent }: { agent: string }) =>
      agent === "other" ? { bytes: 81, limit: 100 } : { bytes: 0, limit: 1e9 };
    const open = async () => ({ ...s.deps, bus: { ...s.deps.bus, usage: full } });
    const submit = (agent: string) =>
      s.ask("/v1/tasks", { token, method: "POST", body: { agent, input: {} }, env: { open } });
    expect((await s.ask("/health", { token, env: { open } })).json).toMatchObject({
      ok: true,
      refusing: ["other"],
    });
    expect((await s.ask("/health", { env: { open } })).json).toEqual({ ok: true });
    expect(await submit("other")).toMatchObject({ status: 503, json: { code: "queue_full" } });
    expect((await submit("tested")).status).toBe(201);
  });

  test("where no agent's queue takes a submit it says so to everyone; whose they are, to who has a token", async () => {
    await using s = await webStage(nats);
    const usage = async () => ({ bytes: 81, limit: 100 });
    const open = async () => ({ ...s.deps, bus: { ...s.deps.bus, usage } });
    const [told, known] = [
      await s.ask("/health", { env: { open } }),
      await s.ask("/health", { token: await s.token("ann"), env: { open } }),
    ];
    for (const one of [told, known]) expect(one).toMatchObject({ status: 503, json: { code: "queue_full" } });
    expect(told.text).not.toMatch(/tested|other/);
    expect(known.json?.detail).toMatch(/All queues are nearly full: .* \(tested, other\)/);
  });

  test("an agent's own bucket that is nearly full is that agent's trouble; all of them are everyone's", async () => {
    await using s = await webStage(nats);
    const token = await s.token("ann");
    const forOne = await s.token("bob", ["submit"], ["tested"]);
    const fullOf = (...names: string[]) => ({
      open: async () => ({
        ...s.deps,
        store: {
          ...s.deps.store,
          usage: async (agent: string) => ({ bytes: names.includes(agent) ? 9e8 : 1_000, limit: 1e9 }),
        },
      }),
    });
    const ask = async (full: readonly string[], of: ReturnType<typeof createApp>, bearer?: string) => {
      const headers = bearer ? { authorization: `Bearer ${bearer}` } : {};
      const bindings = { ...fullOf(...full), log: s.deps.log, rateLimit: 6e6 };
      return s.readAnswer(await of.request("/health", { headers }, bindings));
    };
    const app = () => createApp({ agents: [...agents, { name: "other", lanes: 1 }] });
    const one = app();
    expect(await ask(["other"], one)).toMatchObject({ status: 200, json: { ok: true } });
    const [known, forTested] = [await ask(["other"], one, token), await ask(["other"], one, forOne)];
    expect(known.json).toEqual({ ok: true, store: { bytes: 9e8, limit: 1e9 }, refusing: ["other"] });
    // Nor is how full another's bucket is told to who may not use that agent.
    expect(forTested.json).toEqual({ ok: true, store: { bytes: 1_000, limit: 1e9 } });
    expect(await ask(["other", "tested"], app())).toMatchObject({
      status: 503,
      json: { code: "store_full" },
    });
  });

  test("where one agent's bucket is full and the other's queue, nobody's submit is taken", async () => {
    await using s = await webStage(nats);
    const fullOf = (name: string) => async (of: string | { agent: string }) => ({
      bytes: (typeof of === "string" ? of : of.agent) === name ? 9e8 : 0,
      limit: 1e9,
    });
    const open = async () => ({
      ...s.deps,
      store: { ...s.deps.store, usage: fullOf("other") },
      bus: { ...s.deps.bus, usage: fullOf("tested") },
    });
    expect(await s.ask("/health", { env: { open } })).toMatchObject({
      status: 503,
      json: { code: "queue_full" },
    });
  });

  test("a token for some agents is told nothing of others' queues", async () => {
    await using s = await webStage(nats);
    const token = await s.token("ann", ["submit"], ["tested"]);
    const usage = async ({ agent }: { agent: string }) => ({
      bytes: agent === "other" ? 1e9 : 0,
      limit: 1e9,
    });
    const open = async () => ({ ...s.deps, bus: { ...s.deps.bus, usage } });
    const { json } = await s.ask("/health", { token, env: { open } });
    expect(json).toMatchObject({ ok: true });
    expect(json).not.toHaveProperty("refusing");
  });

  test("with a token it says how full the store is; with a wrong one, nothing", async () => {
    await using s = await webStage(nats);
    const token = await s.token("ann");
    expect((await s.ask("/health", { token })).json).toEqual({
      ok: true,
      store: { bytes: expect.any(Number), limit: s.deps.settings.storeBytes },
    });
    expect((await s.ask("/health")).json).toEqual({ ok: true });
    expect((await s.ask("/health", { token: `pawl_${"x".repeat(43)}` })).status).toBe(401);
  });
});
