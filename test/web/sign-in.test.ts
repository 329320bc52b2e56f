import { afterAll, beforeAll, expect, test } from "vitest";
import type { LocalNats } from "../../infra/local/nats-server.ts";
import { pageAt } from "../../shared/web/frame/session.ts";
import { pagesStage } from "../support/http/pages.ts";
import { testNats } from "../support/servers/stores.ts";

let nats: LocalNats;
beforeAll(async () => {
  nats = await testNats();
});
afterAll(() => nats.stop());

const OWN = { "sec-fetch-site": "same-origin", origin: "null" };

test("a link to a page leads there after the sign-in, through a wrong token too", async () => {
  await using s = await pagesStage(nats);
  const token = await s.token("ann", ["read"]);
  const asked = await s.request("/ui/tasks?agent=tested&q=a%20b");
  const login = asked.headers.get("location") ?? "";
  expect(login).toBe(`/ui/login?next=${encodeURIComponent("/ui/tasks?agent=tested&q=a%20b")}`);
  const fieldOf = (text: string) => /name="next" value="([^"]*)"/.exec(text)?.[1]?.replaceAll("&amp;", "&");
  const next = fieldOf((await s.request(login)).text) as string;
  const send = (text: string) =>
    s.request("/ui/login", {
      method: "POST",
      headers: OWN,
      body: new URLSearchParams({ token: text, next }),
    });
  expect(fieldOf((await send("nonsense")).text)).toBe(next);
  const kept = (await send(token)).headers.get("location") ?? "";
  const there = await s.request(kept, { headers: { cookie: `pawl=${token}` } });
  expect([there.status, there.headers.get("location")]).toEqual([303, "/ui/tasks?agent=tested&q=a%20b"]);
});

test("a browser that did not keep the cookie is told so, instead of being led in a circle", async () => {
  await using s = await pagesStage(nats);
  const answer = await s.request("http://192.0.2.7:8787/ui/login/kept?next=%2Fui");
  expect(answer.status).toBe(403);
  expect(answer.text).toContain("did not keep the session&#39;s cookie");
  expect(answer.text).toContain("HTTPS");
});

test("who follows a link of another site comes to the page, though the browser kept the cookie back", async () => {
  await using s = await pagesStage(nats);
  const ann = await s.visitor("ann");
  const link = { "sec-fetch-mode": "navigate", "sec-fetch-site": "cross-site" };
  const hop = await s.request("/ui/tasks?q=%22%3E%3Cb%3E", { headers: link });
  expect(hop.status).toBe(200);
  // The page asks for itself again, by its own site: the browser sends the cookie then.
  const [, address = ""] = /http-equiv="refresh" content="0;url=([^"]*)"/.exec(hop.text) ?? [];
  expect(address).toBe("/ui/tasks?q=%22%3E%3Cb%3E");
  expect(hop.text).not.toContain("<b>");
  expect((await ann.get(address)).status).toBe(200);
  // Who is not signed in is asked to, then.
  const own = { "sec-fetch-mode": "navigate", "sec-fetch-site": "same-origin" };
  expect((await s.request(address, { headers: own })).status).toBe(303);
});

test.each([
  ["/ui/tasks/t-1?x=1", "/ui/tasks/t-1?x=1"],
  ["/ui", "/ui"],
  [null, "/ui"],
  ["", "/ui"],
  ["//evil.example/ui", "/ui"],
  ["https://evil.example/ui", "/ui"],
  ["/\\evil.example", "/ui"],
  ["/ui\\..\\..\\evil", "/ui"],
  ["/ui/../v1/tasks", "/ui"],
  ["/ui/..//evil.example", "/ui"],
  ["/uix", "/ui"],
  ["/ui/\t/evil", "/ui"],
  ["javascript:alert(1)", "/ui"],
  ["/ui/login", "/ui"],
  ["/ui/logout", "/ui"],
  ["/ui/live", "/ui"],
  ["/ui/tasks/t/live", "/ui"],
])("%s leads to %s", (address, page) => expect(pageAt(address)).toBe(page));
