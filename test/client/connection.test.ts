import { inspect } from "node:util";
import { expect, test } from "vitest";
import { createClient } from "../../shared/client.ts";
import { accepted, answered, json, lost, TOKEN, URL_OF_API, wrongOf } from "../support/http/answered.ts";
import type { Fetch } from "../support/http/calling.ts";
import { read } from "../support/pages.ts";

test("nothing that is thrown, and nothing of the client itself, shows the token", async () => {
  const echoing = () => new Response(`You sent Bearer ${TOKEN}`, { status: 500 });
  const told = () =>
    json({ code: "unexpected", detail: `Bearer ${TOKEN}` }, 500, {
      "content-type": "application/problem+json",
    });
  // Where a text is cut, what is left of the token is one too.
  const cut = () => new Response(`${"x".repeat(180)} Bearer ${TOKEN}`, { status: 200 });
  const sent = () => new Response(null, { status: 302, headers: { location: `https://a.test/?t=${TOKEN}` } });
  const thrown = () => Promise.reject(new TypeError(`${"x".repeat(180)} ${TOKEN}`));
  const wrong: unknown[] = [];
  for (const answer of [echoing, told, lost, cut, sent, thrown]) {
    const { pawl } = answered(answer);
    wrong.push(pawl, pawl.task("t"), await wrongOf(pawl.task("t").get()));
  }
  const odd = [`${TOKEN}\n`, ` ${TOKEN}`, "", `${TOKEN}ü`];
  for (const token of odd) {
    expect(() => createClient({ url: URL_OF_API, token })).toThrow(/the token is empty, or has characters/);
    wrong.push(await wrongOf(createClient({ url: URL_OF_API, token: () => token }).health()));
  }
  for (const one of wrong) {
    expect(inspect(one, { depth: 9, showHidden: true })).not.toContain(TOKEN.slice(0, 8));
    expect(JSON.stringify(one) ?? "").not.toContain(TOKEN.slice(0, 8));
  }
});

test("a token that changes is asked for before each request", async () => {
  const tokens = ["first", "second"];
  const seen: unknown[] = [];
  const wire: Fetch = async (_, init) => {
    seen.push((init.headers as Record<string, string>).authorization);
    return json({ ok: true });
  };
  const pawl = createClient({ url: URL_OF_API, token: async () => tokens.shift() ?? "", fetch: wire });
  await pawl.health();
  await pawl.health();
  expect(seen).toEqual(["Bearer first", "Bearer second"]);
});

test.each([
  ["http://pawl.example.com", /could read the token. Use https:\/\/, or say allowHttp: true/],
  ["http://127.0.0.1.evil.test", /could read the token/],
  ["http://localhost.evil.test", /could read the token/],
  ["https://ann:secret@pawl.test", /^client_invalid: url has a name or password in it;/],
  ["https://pawl.test/?a=b", /has a query or fragment/],
  ["ftp://pawl.test", /begins with ftp:/],
  ["pawl.test", /url is "pawl.test"; it should be the API's address/],
  [undefined, /url is undefined/],
])("url %s is refused", (url, why) => {
  expect(() => createClient({ url: url as string, token: TOKEN })).toThrow(why);
});

test.each(["http://localhost:8080", "http://127.0.0.1:8080", "http://[::1]:1", "http://pawl.localhost"])(
  "url %s is this machine's own",
  (url) => {
    expect(() => createClient({ url, token: TOKEN })).not.toThrow();
  },
);

test("plain HTTP to elsewhere is for who says so; and other mistakes are named", () => {
  const more = { url: "http://pawl.lan", token: TOKEN };
  expect(() => createClient({ ...more, allowHttp: true })).not.toThrow();
  expect(() => createClient({ ...more, allowHttp: true, patience: "soon" })).toThrow(/patience is "soon"/);
  expect(() => createClient({ url: URL_OF_API, token: 7 as never })).toThrow(/neither a text nor a function/);
});

test.each(["", " a", "a ", "a\nb", "ü", "x".repeat(256)])("key %j is refused", async (key) => {
  const { pawl, sent } = answered(accepted);
  expect((await wrongOf(pawl.submit("echo", {}, { key }))).detail).toMatch(/1 to 255 visible ASCII/);
  expect(sent).toEqual([]);
});

test("the client's own codes are on its page", () => {
  const [, codes = ""] = /type ClientCode = ([^;]+);/.exec(read("shared/client/problem.ts")) ?? [];
  const own = [...codes.matchAll(/"(\w+)"/g)].map(([, code]) => code);
  const rows = [...read("docs/client.md").matchAll(/^\| `(\w+)` \| [^|]+ \| [^|]+ \|$/gm)].map(
    ([, code]) => code,
  );
  expect(rows.toSorted()).toEqual(own.toSorted());
  expect(own.length).toBeGreaterThan(3);
});
