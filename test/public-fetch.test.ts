import { afterEach, describe, expect, test, vi } from "vitest";
import summarize from "../agents/summarize.ts";
import { isPrivateAddress, publicFetch, refusePrivate } from "../shared/public-fetch.ts";
import { runAgent } from "../shared/testing.ts";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const words = (text: string) => text.trim().split(/\s+/);

describe("addresses", () => {
  test.each(
    words(`0.0.0.0 10.1.2.3 100.64.0.1 100.127.255.255 127.0.0.1 127.9.9.9 169.254.169.254 172.16.0.1 172.31.255.255
      192.0.0.8 192.168.1.1 198.18.0.1 198.19.255.255 224.0.0.1 239.1.1.1 240.0.0.1 255.255.255.255
      :: ::1 ::ffff:127.0.0.1 ::ffff:a00:1 ::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b:1::1 2002:7f00:1:: 2002:a9fe:a9fe::1
      fc00::1 fd12:3456::1 fe80::1 fe80::1%eth0 fec0::1 ff02::1 2001:db8::1 2001::1 3fff::1 100::1 1:2:3 ::1::2 :::`),
  )("%s is private", (address) => {
    expect(isPrivateAddress(address)).toBe(true);
  });

  test.each(
    words(`1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.1 100.63.255.255 100.128.0.1 126.255.255.255 128.0.0.1 169.253.1.1
      172.15.1.1 172.32.0.1 192.167.1.1 192.169.1.1 223.255.255.255 2606:4700:4700::1111 2001:4860:4860::8888
      ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1 example.com`),
  )("%s is not", (address) => {
    expect(isPrivateAddress(address)).toBe(false);
  });
});

/** What names lead to, instead of asking a server. */
function names(known: Record<string, string[]>) {
  const lookup = vi.fn(async (host: string) => {
    if (!known[host]) throw Object.assign(new Error("not found"), { code: "ENOTFOUND" });
    return known[host].map((address) => ({ address }));
  });
  vi.spyOn(process, "getBuiltinModule").mockImplementation((() => ({ lookup })) as never);
  return lookup;
}

const refused = (address: string) => expect(publicFetch(address)).rejects.toMatchObject({ name: "Fatal" });

test("what is not on the public internet is refused before anything is asked", async () => {
  const fetch = vi.fn();
  vi.stubGlobal("fetch", fetch);
  names({ "inside.example.com": ["93.184.216.34", "10.0.0.7"], "six.example.com": ["::1"] });
  for (const address of words(`http://127.0.0.1/ http://localhost:4222 https://app.localhost./ http://2130706433/
      http://0x7f.1/ http://0177.0.0.1/ http://127.1/ http://[::1]/ http://[::ffff:169.254.169.254]/latest
      http://169.254.169.254/latest/meta-data http://metadata.google.internal/ http://db.internal/ http://printer.local/
      http://inside.example.com/ http://six.example.com/ ftp://example.com/ file:///etc/passwd data:text/plain,x
      https://user:pass@example.com/`))
    await refused(address);
  expect(fetch).not.toHaveBeenCalled();
  // What it says names no secret.
  const error = await refusePrivate(new URL("https://u:hunter2@example.com/?key=s3cret")).catch(String);
  expect(error).not.toMatch(/hunter2|s3cret/);
});

test("redirects are followed as far as they lead to public addresses, and take no secrets elsewhere", async () => {
  names({ "a.example.com": ["93.184.216.34"], "b.example.com": ["93.184.216.35"] });
  const asked: [string, RequestInit][] = [];
  const serve = (routes: Record<string, [number, string]>) =>
    vi.stubGlobal("fetch", async (url: string, init: RequestInit) => {
      asked.push([url, init]);
      const [status, location] = routes[url] ?? [200, ""];
      return new Response(status === 200 ? "here" : null, { status, headers: location ? { location } : {} });
    });
  serve({
    "https://a.example.com/": [302, "/next"],
    "https://a.example.com/next": [307, "https://b.example.com/"],
    "https://a.example.com/trap": [302, "http://169.254.169.254/latest/meta-data"],
    "https://a.example.com/name": [301, "//user:pw@b.example.com/"],
    "https://a.example.com/loop": [302, "https://a.example.com/loop"],
    "https://a.example.com/odd": [302, "http://["],
  });
  const init = {
    method: "POST",
    body: "text",
    headers: { authorization: "Bearer s", "content-type": "text/plain" },
  };
  expect(await (await publicFetch("https://a.example.com/", init)).text()).toBe("here");
  expect(asked.map(([url, { method }]) => `${method} ${url}`)).toEqual([
    "POST https://a.example.com/",
    "GET https://a.example.com/next",
    "GET https://b.example.com/",
  ]);
  expect(new Headers(asked[1]?.[1].headers).get("authorization")).toBe("Bearer s");
  expect([...new Headers(asked[2]?.[1].headers)]).toEqual([]);
  expect(asked[2]?.[1].body).toBeUndefined();
  for (const path of ["trap", "name", "loop", "odd"]) await refused(`https://a.example.com/${path}`);
  expect(asked.map(([url]) => url).filter((url) => url.includes("169.254"))).toEqual([]);
  expect(asked.filter(([url]) => url.endsWith("/loop"))).toHaveLength(6);
  const manual = await publicFetch("https://a.example.com/", { redirect: "manual" });
  expect(manual.status).toBe(302);
  await expect(publicFetch("https://a.example.com/", { redirect: "error" })).rejects.toThrow(
    /redirects: not followed/,
  );
});

test("a Worker, which can look up no names, goes by the address alone", async () => {
  const lookup = names({ "inside.example.com": ["10.0.0.7"] });
  vi.stubGlobal("navigator", { userAgent: "Cloudflare-Workers" });
  vi.stubGlobal("fetch", async () => new Response("ok"));
  expect((await publicFetch("https://inside.example.com/")).status).toBe(200);
  expect(lookup).not.toHaveBeenCalled();
  await refused("http://10.0.0.7/");
});

test("an example agent that is given a private address fails for good, and asks nobody", async () => {
  const fetch = vi.fn();
  vi.stubGlobal("fetch", fetch);
  const run = await runAgent(summarize, { urls: ["http://169.254.169.254/latest/meta-data"] });
  expect(run).toMatchObject({
    state: "failed",
    error: { code: "fatal", message: expect.stringMatching(/private/) },
  });
  expect(fetch).not.toHaveBeenCalled();
});
