import { describe, expect, test } from "vitest";
import { clientOf } from "../../shared/client/client.ts";
import { createClient } from "../../shared/client.ts";
import {
  accepted,
  answered,
  json,
  keysOf,
  lost,
  problem,
  TOKEN,
  URL_OF_API,
  wrongOf,
} from "../support/http/answered.ts";
import { type Fetch, hasty } from "../support/http/calling.ts";

test("what is asked is what the API takes: address, token, key, body", async () => {
  const { pawl, sent } = answered(accepted);
  const input = { text: "hello" };
  await pawl.submit("echo", input, { key: "order 7", at: new Date(0), labels: { a: "b" } });
  await pawl.submit("echo", input, { id: "own" });
  await pawl.task("a/b?c").get();
  expect(sent.map(({ url }) => url)).toEqual([
    "https://pawl.test/api/v1/tasks",
    "https://pawl.test/api/v1/tasks",
    "https://pawl.test/api/v1/tasks/a%2Fb%3Fc",
  ]);
  const [first, second, third] = sent.map(({ init }) => init);
  expect(first?.headers).toMatchObject({ authorization: `Bearer ${TOKEN}`, "idempotency-key": "order 7" });
  expect(JSON.parse(String(first?.body))).toEqual({
    agent: "echo",
    input,
    at: "1970-01-01T00:00:00.000Z",
    labels: { a: "b" },
  });
  // An id names the work already; the API refuses both.
  expect(second?.headers).not.toHaveProperty("idempotency-key");
  expect([third?.method, third?.body]).toEqual(["GET", undefined]);
});

describe("a submit is sent again under its own key", () => {
  test.each<[string, () => Response | Promise<Response>]>([
    ["no answer", lost],
    [
      "an answer that breaks off",
      () => new Response('{"id": "t', { headers: { "content-type": "application/json" } }),
    ],
    ["a gateway's page", () => new Response("<h1>Bad gateway</h1>", { status: 502 })],
    ["a server that is away", () => problem("store_unavailable", 503)],
    ["one request too many", () => problem("too_many_requests", 429)],
  ])("after %s", async (_, fault) => {
    const { pawl, sent, slept } = answered(fault, fault, accepted);
    await pawl.submit("echo", { text: "hello" });
    const keys = keysOf(sent);
    expect(keys).toHaveLength(3);
    expect(keys[0]).toMatch(/^[0-9a-f]{32}$/);
    expect(new Set(keys).size).toBe(1);
    expect(new Set(sent.map(({ init }) => init.body)).size).toBe(1);
    expect(slept).toHaveLength(2);
    await pawl.submit("echo", { text: "hello" });
    expect(keysOf(sent)[3]).not.toBe(keys[0]);
  });

  test("but not where it was refused", async () => {
    for (const [code, status] of [
      ["input_invalid", 422],
      ["unauthorised", 401],
      ["id_conflict", 409],
      ["unexpected", 500],
    ] as const) {
      const { pawl, sent } = answered(() => problem(code, status));
      const wrong = await wrongOf(pawl.submit("echo", {}));
      expect(wrong).toMatchObject({ name: "Problem", code, status, detail: `so it is: ${code}` });
      expect(sent).toHaveLength(1);
    }
  });
});

test("pauses grow, Retry-After is obeyed, and patience has an end", async () => {
  const { pawl, slept } = answered(lost);
  expect(await wrongOf(pawl.task("t").get())).toMatchObject({
    code: "no_answer",
    detail: expect.stringMatching(/^No answer from https:\/\/pawl\.test\/api \(ECONNRESET\)$/),
  });
  const sum = slept.reduce((a, b) => a + b);
  expect(sum).toBeGreaterThan(100_000);
  expect(sum).toBeLessThan(120_000);
  for (const [i, ms] of slept.entries()) {
    const whole = Math.min(10_000, 250 * 2 ** i);
    expect(ms).toBeGreaterThanOrEqual(whole / 2);
    expect(ms).toBeLessThanOrEqual(whole);
  }
  const busy = answered(() => problem("quota_exceeded", 429, { "retry-after": "7" }), accepted);
  await busy.pawl.submit("echo", {});
  expect(busy.slept).toEqual([7_000]);
  // Nobody waits for what comes after the end of patience.
  const full = answered(() => problem("quota_exceeded", 429, { "retry-after": "3600" }));
  expect(await wrongOf(full.pawl.submit("echo", {}))).toMatchObject({ retryAfter: 3_600 });
  expect(full.slept).toEqual([]);
  const dated = new Date(Date.now() + 5_000).toUTCString();
  const later = answered(
    () => problem("unhealthy", 503, { "retry-after": dated }),
    () => json({ agents: [] }),
  );
  expect(await later.pawl.agents()).toEqual([]);
  expect(later.slept[0]).toBeGreaterThan(3_000);
});

describe("what changes a task is sent once", () => {
  const operations = {
    approve: (pawl) => pawl.task("t").approve("go"),
    reject: (pawl) => pawl.task("t").reject("go"),
    signal: (pawl) => pawl.task("t").signal("paid", 3),
    cancel: (pawl) => pawl.task("t").cancel(),
    redrive: (pawl) => pawl.task("t").redrive(),
    resolve: (pawl) => pawl.task("t").resolve({ happened: false }),
  } satisfies Record<string, (pawl: ReturnType<typeof answered>["pawl"]) => Promise<unknown>>;

  test.each(Object.entries(operations))("%s", async (_, operate) => {
    const { pawl, sent } = answered(lost);
    expect((await wrongOf(operate(pawl))).detail).toMatch(
      /Nobody knows whether it was done: look at the task/,
    );
    expect(sent).toHaveLength(1);
    const away = answered(() => problem("store_unavailable", 503, { "retry-after": "1" }));
    expect(await wrongOf(operate(away.pawl))).toMatchObject({ status: 503, retryAfter: 1 });
    expect(away.sent).toHaveLength(1);
    // That was refused before anything was done.
    const busy = answered(() => problem("too_many_requests", 429, { "retry-after": "1" }), accepted);
    await operate(busy.pawl);
    expect(busy.sent).toHaveLength(2);
  });
});

describe("an answer that is none of Pawl's", () => {
  test("is named, bounded, and safe to print", async () => {
    const page = `<html><style>p{}</style><h1>404</h1>\u001b[31m nginx${"x".repeat(5_000)}</html>`;
    const { pawl } = answered(
      () => new Response(page, { status: 404, headers: { "content-type": "text/html" } }),
    );
    const wrong = await wrongOf(pawl.task("t").get());
    expect(wrong).toMatchObject({ code: "foreign_answer", status: 404 });
    expect(wrong.detail).toMatch(/\(404, text\/html\): 404 \[31m nginxx+…$/);
    expect(wrong.detail.length).toBeLessThan(400);
  });

  test("also where its status says that all is well", async () => {
    const { pawl } = answered(
      () => new Response("<p>Sign in</p>", { headers: { "content-type": "text/html" } }),
    );
    expect((await wrongOf(pawl.task("t").get())).detail).toMatch(/\(200, text\/html\): Sign in$/);
    expect((await wrongOf(pawl.submit("echo", {}))).code).toBe("foreign_answer");
  });

  test("may redirect, which is not followed", async () => {
    const elsewhere = () => new Response(null, { status: 301, headers: { location: "https://evil.test/" } });
    const { pawl, sent } = answered(elsewhere);
    expect((await wrongOf(pawl.submit("echo", {}))).detail).toMatch(/redirects to "https:\/\/evil.test\/"/);
    expect(sent).toHaveLength(1);
    expect(sent[0]?.init.redirect).toBe("manual");
  });

  test("may have no end, which is not waited for", async () => {
    let isCancelled = false;
    const endless = () =>
      new Response(
        new ReadableStream({
          pull: (stream) => stream.enqueue(new TextEncoder().encode("and on ".repeat(1_000))),
          cancel: () => {
            isCancelled = true;
          },
        }),
        { status: 404 },
      );
    expect((await wrongOf(answered(endless).pawl.task("t").get())).code).toBe("foreign_answer");
    expect(isCancelled).toBe(true);
  });
});

test("who stops waiting gets their own reason, before, during and between tries", async () => {
  const reason = new Error("the user left");
  expect(
    await answered(accepted)
      .pawl.health({ signal: AbortSignal.abort(reason) })
      .catch((e) => e),
  ).toBe(reason);
  for (const pause of [true, false]) {
    const stop = new AbortController();
    const slow: Fetch = (_, { signal }) =>
      new Promise((_resolve, reject) => {
        if (pause) reject(new TypeError("fetch failed"));
        signal?.addEventListener("abort", () => reject(signal.reason));
        stop.abort(reason);
      });
    const pawl = createClient({ url: URL_OF_API, token: TOKEN, fetch: slow });
    expect(await pawl.health({ signal: stop.signal }).catch((e) => e)).toBe(reason);
  }
});

test("a try that takes too long is given up, and made again", async () => {
  let tries = 0;
  const slow: Fetch = async (_, { signal }) => {
    if (++tries > 1) return json({ ok: true });
    return new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
  };
  const pawl = clientOf(hasty({ url: URL_OF_API, token: TOKEN, fetch: slow, timeout: "20ms" }));
  expect(await pawl.task("t").get()).toEqual({ ok: true });
  const deaf = createClient({
    url: URL_OF_API,
    token: TOKEN,
    timeout: "20ms",
    patience: "0ms",
    fetch: (_, { signal }) =>
      new Promise((_resolve, reject) => signal?.addEventListener("abort", () => reject(signal.reason))),
  });
  expect((await wrongOf(deaf.health())).detail).toMatch(/\(none within 20 ms\)$/);
});

test("health is asked once: what is wrong now is the answer", async () => {
  const { pawl, sent } = answered(() => problem("unhealthy", 503));
  expect(await wrongOf(pawl.health())).toMatchObject({ code: "unhealthy", status: 503 });
  expect(sent).toHaveLength(1);
});

test("what can't be JSON is refused before anything is sent", async () => {
  const { pawl, sent } = answered(accepted);
  const odd = { n: 1n } as never;
  expect(await wrongOf(pawl.submit("echo", odd))).toMatchObject({
    code: "client_invalid",
    detail: expect.stringMatching(/^what is sent has to be JSON: .*BigInt/),
  });
  expect(sent).toEqual([]);
});

test("pages may be short or empty, and all items come", async () => {
  const page = (ids: string[], cursor?: string) => () => json({ tasks: ids.map((id) => ({ id })), cursor });
  const { pawl, sent } = answered(page(["a", "b"], "c1"), page([], "c2"), page(["c"]));
  const found: string[] = [];
  for await (const { id } of pawl.tasks({ state: "waiting", label: "team=d&c" })) found.push(id);
  expect(found).toEqual(["a", "b", "c"]);
  expect(sent.map(({ url }) => new URL(url).search)).toEqual([
    "?state=waiting&label=team%3Dd%26c",
    "?state=waiting&label=team%3Dd%26c&cursor=c1",
    "?state=waiting&label=team%3Dd%26c&cursor=c2",
  ]);
});
