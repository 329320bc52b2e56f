import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { PawlError } from "../../shared/errors/errors.ts";
import { revokeToken } from "../../shared/web/tokens.ts";
import { pagesStage, type Seen } from "../support/http/pages.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const PAGES = [
  "/ui",
  "/ui/tasks",
  "/ui/dead-letters",
  "/ui/reports",
  "/ui/tasks/t",
  "/ui/live",
  "/ui/nowhere",
];
const POLICY =
  "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
const OWN = { "sec-fetch-site": "same-origin" };

function guarded({ headers }: Seen): void {
  expect(headers.get("content-security-policy")).toBe(POLICY);
  expect(headers.get("x-content-type-options")).toBe("nosniff");
  expect(headers.get("referrer-policy")).toBe("same-origin");
}

test("without a cookie every page leads to the login, and all of it is guarded by headers", async () => {
  await using s = await pagesStage(nats);
  expect((await s.request("/")).headers.get("location")).toBe("/ui");
  for (const path of PAGES) {
    for (const headers of [{}, { cookie: "pawl=x" }, { cookie: `pawl=pawl_${"x".repeat(43)}` }]) {
      const answer = await s.request(path, { headers });
      const next = path === "/ui" || path === "/ui/live" ? "" : `?next=${encodeURIComponent(path)}`;
      expect([answer.status, answer.headers.get("location")], path).toEqual([303, `/ui/login${next}`]);
      guarded(answer);
    }
  }
  const login = await s.request("/ui/login");
  expect(login.status).toBe(200);
  expect(login.headers.get("cache-control")).toBe("no-store");
  guarded(login);
  const assets = [...login.text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(
    ([, path]) => path as string,
  );
  expect(new Set(assets).size).toBe(3);
  for (const path of assets) {
    const asset = await s.request(path);
    expect(asset.status).toBe(200);
    expect(asset.headers.get("cache-control")).toBe("public, max-age=86400");
    expect(asset.headers.get("content-type")).toMatch(
      /^(text\/(css|javascript)|image\/svg\+xml); charset=utf-8$/,
    );
    guarded(asset);
  }
  // Nothing inline, or the policy would stop it.
  expect(login.text).not.toMatch(/<style|style=|<script>|\son\w+=/);
});

test("the login takes the API's tokens, and its cookie is out of reach for scripts and other sites", async () => {
  await using s = await pagesStage(nats);
  const token = await s.token("ann");
  const login = (text: string, at = "", headers: Record<string, string> = OWN) =>
    s.request(`${at}/ui/login`, { method: "POST", headers, body: new URLSearchParams({ token: text }) });
  for (const wrong of ["", "nonsense", `pawl_${"x".repeat(43)}`]) {
    const refused = await login(wrong);
    expect(refused.status).toBe(401);
    expect(refused.headers.get("set-cookie")).toBeNull();
    expect(refused.text).toContain("not a valid token");
  }
  expect((await login(await s.token("sub", ["submit"]))).status).toBe(403);
  const local = await login(` ${token}\n`);
  expect([local.status, local.headers.get("location")]).toEqual([303, "/ui/login/kept?next=%2Fui"]);
  expect(local.headers.get("set-cookie")).toBe(
    `pawl=${token}; Max-Age=43200; Path=/; HttpOnly; SameSite=Strict`,
  );
  const far = await login(token, "https://pawl.example.org");
  expect(far.headers.get("set-cookie")).toBe(
    `__Host-pawl=${token}; Max-Age=43200; Path=/; HttpOnly; Secure; SameSite=Strict`,
  );
  const on = (cookie: string) => s.request("https://pawl.example.org/ui", { headers: { cookie } });
  expect((await on(`__Host-pawl=${token}`)).status).toBe(200);
  // One that a neighbour domain may have set.
  expect((await on(`pawl=${token}`)).status).toBe(303);
  // Somebody else's site can't log its visitor in as somebody else.
  for (const headers of [{}, { "sec-fetch-site": "cross-site" }, { origin: "https://evil.example" }])
    expect((await login(token, "", headers as Record<string, string>)).status).toBe(403);
});

test("a token that is revoked is out at once, and a logout takes the cookie away", async () => {
  await using s = await pagesStage(nats);
  const ann = await s.visitor("ann");
  expect((await ann.get("/ui")).status).toBe(200);
  const left = await ann.post("/ui/logout", {});
  expect([left.status, left.headers.get("location")]).toEqual([303, "/ui/login"]);
  expect(left.headers.get("set-cookie")).toMatch(/^pawl=; Max-Age=0; Path=\/; HttpOnly/);
  await revokeToken(s.deps.store, ann.token);
  const gone = await ann.get("/ui/tasks");
  expect([gone.status, gone.headers.get("location")]).toEqual([303, "/ui/login?next=%2Fui%2Ftasks"]);
  expect(gone.headers.get("set-cookie")).toMatch(/^pawl=; Max-Age=0/);
});

test("a form without the session's key, or from elsewhere, does nothing", async () => {
  await using s = await pagesStage(nats);
  const ann = await s.visitor("ann");
  const bob = await s.visitor("bob");
  await s.submit({}, { id: "t" });
  const theirs = await bob.field("/ui", "key");
  expect(theirs).not.toBe(await ann.field("/ui", "key"));
  const own = { "sec-fetch-site": "same-origin", origin: "http://localhost" };
  for (const key of ["", "x", theirs, theirs.slice(1)]) {
    const refused = await ann.post("/ui/tasks/t/cancel", { key }, own);
    expect(refused.status, key).toBe(403);
    guarded(refused);
  }
  const cookie = `pawl=${ann.token}`;
  expect(
    (await s.request("/ui/tasks/t/cancel", { method: "POST", headers: { cookie, ...own } })).status,
  ).toBe(403);
  for (const headers of [
    { origin: "https://evil.example" },
    { origin: "http://localhost", "sec-fetch-site": "cross-site" },
    { origin: "http://localhost", "sec-fetch-site": "same-site" },
    { origin: "null" },
    {},
  ] as Record<string, string>[])
    expect((await ann.post("/ui/tasks/t/cancel", {}, headers)).status, JSON.stringify(headers)).toBe(403);
  // What a bearer may do, its header does not do here, and the cookie does nothing at the API.
  const bearer = { authorization: `Bearer ${ann.token}` };
  expect((await s.request("/ui", { headers: bearer })).status).toBe(303);
  expect((await s.request("/v1/tasks/t/cancel", { method: "POST", headers: { cookie } })).status).toBe(401);
  expect((await s.task("t")).state).toBe("dispatched");
  expect((await ann.post("/ui/tasks/t/cancel", {}, own)).status).toBe(303);
  expect((await s.task("t")).state).toBe("cancelled");
});

test("one sees and does what one's token may: others' tasks are not there", async () => {
  await using s = await pagesStage(nats);
  const ann = await s.visitor("ann", ["read"]);
  const bob = await s.visitor("bob", ["read", "submit"]);
  const boss = await s.visitor("boss");
  const limited = await s.visitor("ann", ["read", "operate"], ["other"]);
  await s.submit({ secret: "of ann" }, { id: "anns", meta: { owner: "ann" } });
  expect((await ann.get("/ui/tasks/anns")).text).toContain("of ann");
  expect((await ann.get("/ui/tasks/anns")).text).not.toMatch(/<button id="cancel/);
  expect((await ann.post("/ui/tasks/anns/cancel", {})).status).toBe(403);
  for (const other of [bob, limited]) {
    for (const path of ["/ui/tasks/anns", "/ui/tasks/anns/live"]) {
      const answer = await other.get(path);
      expect(answer.status).toBe(404);
      expect(answer.text).not.toContain("of ann");
    }
    for (const path of ["/ui", "/ui/tasks", "/ui/tasks?agent=tested", "/ui/dead-letters"])
      expect((await other.get(path)).text, path).not.toContain("anns");
  }
  expect((await limited.post("/ui/tasks/anns/cancel", {})).status).toBe(404);
  for (const path of ["/ui/reports", "/ui/reports/2026-W46", "/ui/reports/2026-W46/document"]) {
    expect((await ann.get(path)).status, path).toBe(403);
    expect((await limited.get(path)).status, path).toBe(403);
  }
  expect((await boss.get("/ui/reports")).status).toBe(200);
  expect((await boss.get("/ui/reports/2026-W46")).status).toBe(404);
  expect((await boss.get("/ui/tasks/anns")).text).toMatch(/<button id="cancel/);
  expect((await s.task("anns")).state).toBe("dispatched");
});

test("odd addresses are answered with a page, never with an error of ours", async () => {
  await using s = await pagesStage(nats);
  const ann = await s.visitor("ann");
  for (const [path, status] of [
    ["/ui/nowhere", 404],
    ["/ui/tasks/none", 404],
    ["/ui/tasks/%00", 404],
    ["/ui/tasks/__x__", 404],
    ["/ui/tasks?cursor=x", 422],
    ["/ui/tasks?state=asleep", 422],
    ["/ui/tasks?agent=&state=", 200],
    ["/ui/tasks?agent=nobody", 200],
    ["/ui/dead-letters?state=running", 422],
    ["/ui/reports/..%2f..", 404],
    ["/ui/reports/%3Cscript%3E", 404],
  ] as const) {
    const answer = await ann.get(path);
    expect(answer.status, path).toBe(status);
    expect(answer.headers.get("content-type"), path).toBe("text/html; charset=UTF-8");
    expect(answer.text).not.toContain("<script>");
    guarded(answer);
  }
  const large = await ann.post("/ui/tasks/none/answer", { note: "x".repeat(70_000) });
  expect(large.status).toBe(413);
});

test("servers that are away are a page too, which does not say where they are", async () => {
  await using s = await pagesStage(nats);
  const open = async () => {
    throw new PawlError("bus_unavailable", "NATS at nats://secret-host does not answer");
  };
  const headers = { cookie: `pawl=${await s.token("ann")}` };
  const answer = await s.request("/ui", { headers }, { open });
  expect(answer.status).toBe(503);
  expect(answer.headers.get("retry-after")).toBe("60");
  expect(answer.text).toContain("Server error");
  expect(answer.text).not.toContain("secret-host");
  guarded(answer);
});

test("too many requests are told to wait, whichever way a token comes", async () => {
  await using s = await pagesStage(nats);
  const token = await s.token("ann");
  const ask = (headers: Record<string, string>, path: string) =>
    s.request(path, { headers }, { rateLimit: 8 });
  expect((await ask({ cookie: `pawl=${token}` }, "/ui/tasks")).status).toBe(200);
  expect((await ask({ authorization: `Bearer ${token}` }, "/v1/tasks")).status).toBe(200);
  const slower = await ask({ cookie: `pawl=${token}` }, "/ui/tasks");
  expect(slower.status).toBe(429);
  expect(Number(slower.headers.get("retry-after"))).toBeGreaterThan(0);
});

test("a Host that is no host's name is nobody's own, and no failure", async () => {
  await using s = await pagesStage(nats);
  const body = new URLSearchParams({ token: await s.token("ann") });
  const headers = { origin: "http://localhost" };
  const sent = new Request("http://localhost/ui/login", { method: "POST", body, headers });
  const odd = new Proxy(sent, {
    get: (request, name) => {
      if (name === "url") return "http://a b/ui/login";
      const value = Reflect.get(request, name, request);
      return typeof value === "function" ? value.bind(request) : value;
    },
  });
  expect((await s.app.fetch(odd, s.bindings)).status).toBe(403);
});
