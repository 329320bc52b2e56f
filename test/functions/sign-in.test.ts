import { expect, test } from "vitest";
import { isAuthorised } from "../../functions/wiring/run.ts";
import { signIn } from "../../functions/wiring/sign-in.ts";
import { triggers } from "../../functions/wiring/trigger.ts";
import { serveHttp } from "../support/http/http.ts";

const tokenUntil = (exp: number) => `head.${btoa(JSON.stringify({ exp }))}.signature`;
const ECHO = "https://pawl-echo-4711.europe-west1.run.app/run";

/** Google's metadata server, as far as it makes out tokens. */
async function metadata(answer: () => Response) {
  const asked: URL[] = [];
  const served = await serveHttp(async (request) => {
    expect(request.headers.get("metadata-flavor")).toBe("Google");
    asked.push(new URL(request.url));
    return answer();
  });
  return Object.assign(served, { asked });
}

test("a token is made out to each function's address, and asked for again shortly before it expires", async () => {
  let now = 1_700_000_000_000;
  const token = tokenUntil(now / 1_000 + 3_600);
  await using server = await metadata(() => new Response(token));
  const identity = signIn({ metadata: server.url, now: () => now, within: 60_000 });
  const header = { "x-serverless-authorization": `Bearer ${token}` };
  expect(await Promise.all([identity(ECHO), identity(ECHO)])).toEqual([header, header]);
  expect(await identity(ECHO.replace("echo", "digest"))).toEqual(header);
  expect(server.asked.map((url) => url.searchParams.get("audience"))).toEqual([
    "https://pawl-echo-4711.europe-west1.run.app",
    "https://pawl-digest-4711.europe-west1.run.app",
  ]);
  now += 54 * 60_000;
  await identity(ECHO);
  expect(server.asked).toHaveLength(2);
  now += 2 * 60_000;
  await identity(ECHO);
  expect(server.asked).toHaveLength(3);
});

test("nobody else's address is told who calls, and without a token the call goes without", async () => {
  await using server = await metadata(() => new Response("no such account", { status: 404 }));
  const identity = signIn({ metadata: server.url, within: 60_000 });
  for (const url of [
    "https://pawl-echo.workers.dev/run",
    "http://a.run.app/run",
    "https://run.app.evil.test/run",
  ])
    expect(await identity(url)).toEqual({});
  expect(server.asked).toHaveLength(0);
  expect(await identity(ECHO)).toEqual({});
  expect(await identity(ECHO)).toEqual({});
  expect(server.asked).toHaveLength(1);
  expect(await signIn({ metadata: null })(ECHO)).toEqual({});
});

test("a wake carries the token beside the secret", async () => {
  const headers: Headers[] = [];
  await using served = await serveHttp(async (request) => {
    headers.push(request.headers);
    return new Response(null, { status: 202 });
  });
  const config = { wakeUrl: `${served.url}/{agent}`, runSecret: "a-secret-of-the-tests" };
  const { trigger, done } = triggers(
    config,
    () => {},
    async () => ({ "x-serverless-authorization": "Bearer t" }),
  );
  trigger("echo");
  await done();
  expect(headers[0]?.get("x-serverless-authorization")).toBe("Bearer t");
  expect(headers[0]?.get("authorization")).toBe("Bearer a-secret-of-the-tests");
});

test("the scheduler's own token does not stand for the secret, which comes beside it", async () => {
  const request = (headers: Record<string, string>) =>
    new Request("https://x.test/run", { method: "POST", headers });
  const token = { authorization: "Bearer a-token-of-google" };
  const secret = "a-secret-of-the-tests";
  expect(await isAuthorised(request({ ...token, "x-pawl-run-secret": secret }), secret)).toBe(true);
  expect(await isAuthorised(request({ ...token, "x-pawl-run-secret": "wrong" }), secret)).toBe(false);
  expect(await isAuthorised(request(token), secret)).toBe(false);
  expect(await isAuthorised(request({ authorization: `Bearer ${secret}` }), secret)).toBe(true);
  expect(await isAuthorised(request({ "x-pawl-run-secret": "" }), undefined)).toBe(false);
});
